"""A worker: a process that drives one run for the runtime of another, over one line (composition root)."""
