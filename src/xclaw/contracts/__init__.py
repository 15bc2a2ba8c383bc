"""The words and interfaces that every room shares. Standard library only; nothing here does I/O."""
