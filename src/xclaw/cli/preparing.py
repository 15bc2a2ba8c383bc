"""Shows that the embedded model is being prepared: seconds of joining, or a download of a gigabyte."""

import sys
import time

STAGES = {
    "wait": "waiting for another process that prepares the embedded model",
    "download": "downloading the embedded model",
    "join": "joining the embedded model's parts (first use)",
    "verify": "checking the embedded model",
}
REDRAW_S = 0.2


class PreparationProgress:
    """Told of each step. On a terminal one line that is drawn over, elsewhere a line for each stage."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._stage = ""
        self._drawn_at = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` and `total` in bytes; `total` is 0 when it is not known."""
        text = STAGES.get(stage, stage)
        if stage != self._stage:
            self._stage = stage
            if not self._live:
                print(f"xclaw: {text}", file=sys.stderr)
        if not self._live:
            return
        now = time.monotonic()
        is_last = bool(total) and done >= total
        if is_last or now - self._drawn_at >= REDRAW_S:
            self._drawn_at = now
            share = f" {done * 100 // total}% of {total / 1e6:,.0f} MB" if total else ""
            print(f"\r\x1b[Kxclaw: {text}{share}", end="\n" if is_last else "", file=sys.stderr, flush=True)
