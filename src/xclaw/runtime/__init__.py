"""The life of runs: start, watch, cancel, time out, resume."""
