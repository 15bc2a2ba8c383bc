"""A program that exchanges what is at two paths, each time in one step, until its input ends.

Run with the pairs as arguments, one path after the other. Says "ready" once it has begun.
"""

import ctypes
import random
import select
import sys

_HERE = -100
_EXCHANGE = 2


def main() -> int:
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    paths = [path.encode() for path in sys.argv[1:]]
    pairs = list(zip(paths[::2], paths[1::2], strict=True))
    order = random.Random(1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(50):
            one, other = order.choice(pairs)
            if rename(_HERE, one, _HERE, other, _EXCHANGE) != 0:
                return ctypes.get_errno() or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
