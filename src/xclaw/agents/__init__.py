"""Agent definitions: the built-in ones and the loader for users' own."""
