"""The journal on SQLite."""
