"""Kinds of sub-agent behind one contract."""
