"""Wires of other makers, by which their clients talk to the gateway."""
