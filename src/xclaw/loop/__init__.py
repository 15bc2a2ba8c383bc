"""One agent, one conversation: ask, run tools, repeat."""
