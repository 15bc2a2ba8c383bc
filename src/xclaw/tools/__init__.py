"""What agents can do, besides handing work out."""
