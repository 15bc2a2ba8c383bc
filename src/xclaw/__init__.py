"""xclaw: a multi-agent collaboration runtime."""

__version__ = "0.1.0"
