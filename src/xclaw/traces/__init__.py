"""What happened, read from the journal: tree, timeline, cost."""
