"""What outlives a run beside the journal: notes, recall, the scratchpad."""
