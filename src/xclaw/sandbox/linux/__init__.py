"""What several kinds of sandbox take from Linux: user ids, views, limits, and looking at what commands take up."""
