"""Whose things are."""

OWNER = "owner"
"""The user whose home it is: holds the first token, may see what others do."""
