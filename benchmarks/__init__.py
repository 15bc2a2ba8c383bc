"""What xclaw costs beside the model: measured against a bare loop in the same run."""
