"""What a sandbox is told by from outside, also when everything above it was killed (standard library only)."""

MARK = "XCLAW_SANDBOX"
"""Environment variable that tells the processes of a sandbox outside of it: its name."""
GROUPS_FILE = "groups"
"""In a sandbox's directory: the control groups to remove when it is gone."""
