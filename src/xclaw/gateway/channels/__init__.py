"""Where users come from: one file per adapter."""
