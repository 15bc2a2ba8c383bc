"""Model names to live models."""
