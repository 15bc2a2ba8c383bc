"""The process that outlives xclaw by a moment (standard library only): when its standard input ends, it ends
the containers of one sandbox: `python guard.py PODMAN LABEL`."""

import os
import subprocess
import sys

END_S = 20.0
ROUNDS = 3


def end_containers(podman: str, label: str) -> None:
    """Until there are none. One that is just being made can be missed once, so it looks again."""
    for _ in range(ROUNDS):
        found = _asked([podman, "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}"]).split()
        if not found:
            return
        _asked([podman, "rm", "--force", "--time", "0", *found])


def _asked(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=END_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def main() -> None:
    while os.read(0, 512):
        pass
    end_containers(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
