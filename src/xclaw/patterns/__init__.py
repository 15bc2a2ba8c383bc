"""Several agents: one file per pattern, each a tool."""
