"""The embedded model: weights that are verified before use, and one local server around them."""
