"""The chat-completions wire: OpenAI and whatever speaks like it."""
