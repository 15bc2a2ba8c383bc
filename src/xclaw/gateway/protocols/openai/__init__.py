"""The OpenAI wire: models, chat completions, and the stateless part of responses."""
