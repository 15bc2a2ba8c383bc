"""The program that searches open files with Python's own expressions, in a process that can be killed: some
expressions take for ever, and nothing else in a Python process would run meanwhile.

Run with `-I -S`, so nothing but the standard library is loaded. One argument: JSON of `pattern`, `literal`, `ignore_case`,
`descriptors`, `most` (lines of one file), `line_bytes` and `cpu_s`. Writes what ripgrep writes: the
descriptor's path, NUL, line, column, text. Ends with 3 and a reason for an expression that is none.
"""

import json
import os
import re
import resource
import sys
import warnings

INVALID = 3
_READ_BYTES = 1 << 20
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def main() -> int:
    asked = json.loads(sys.argv[1])
    seconds = int(asked["cpu_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    warnings.simplefilter("ignore")
    source = re.escape(asked["pattern"]) if asked["literal"] else asked["pattern"]
    try:
        pattern = re.compile(source, re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.write(str(error))
        return INVALID
    for descriptor in asked["descriptors"]:
        lines = _found(pattern, _content(descriptor), asked["most"], asked["line_bytes"])
        for number, column, text in lines:
            head = b"/proc/self/fd/%d\0%d:%d:" % (descriptor, number, column)
            sys.stdout.buffer.write(head + text + b"\n")
        sys.stdout.flush()
    return 0


def _content(descriptor: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    while part := os.pread(descriptor, _READ_BYTES, at):
        parts.append(part)
        at += len(part)
    content = b"".join(parts)
    if content.startswith(_UTF16):
        return content.decode("utf-16", "replace").encode("utf-8", "replace")
    return content.removeprefix(b"\xef\xbb\xbf")


def _found(
    pattern: re.Pattern[str], content: bytes, most: int, line_bytes: int
) -> list[tuple[int, int, bytes]]:
    found: list[tuple[int, int, bytes]] = []
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, raw in enumerate(lines, 1):
        text = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        match = pattern.search(text)
        if match is not None:
            column = len(text[: match.start()].encode("utf-8", "surrogateescape")) + 1
            found.append((number, column, raw[:line_bytes]))
            if len(found) == most:
                break
    return found


if __name__ == "__main__":
    sys.exit(main())
