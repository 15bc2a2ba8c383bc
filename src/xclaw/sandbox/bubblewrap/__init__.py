"""Sandboxes of Linux namespaces: one keeper process for each, one bubblewrap for each command."""
