"""Programs that are started in QEMU's place: guests that misbehave, in a moment and on any machine."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from xclaw.sandbox.kvm.machine import Wanted

HEAD = r"""#!/usr/bin/python3 -IS
import json, os, re, socket, sys, time
line = next(socket.socket(fileno=int(found[1])) for word in sys.argv if (found := re.search(r"id=line,fd=(\d+)", word)))
def say(message): line.sendall(json.dumps(message).encode() + b"\n")
def orders():
    for text in line.makefile("rb"):
        yield json.loads(text)
"""
WELL_BEHAVED = """
say({"ready": "6.1"})
for order in orders():
    if order["op"] == "run":
        say({"id": order["id"], "began": True})
    if order["op"] != "input":
        say({"id": order["id"], "end": "exited", "code": 0})
"""
SILENT = "print('here we stand'); sys.stdout.flush(); time.sleep(600)"
DYING = "print('no such machine'); sys.exit(3)"
FLOODING = """
say({"ready": "6.1"})
next(orders())
while True:
    line.sendall(b'{"id": 1, "out": "eA=="}\\n' * 1000)
"""
DEAF = """
say({"ready": "6.1"})
for order in orders():
    if order["op"] == "run":
        say({"id": order["id"], "began": True})
        say({"id": order["id"] + 1, "end": "exited", "code": 0})
"""
ENDLESS = """
say({"ready": "6.1"})
next(orders())
while True:
    line.sendall(b"x" * 65536)
"""


@contextmanager
def guest(body: str) -> Generator[Wanted]:
    """A machine to boot that is only this script. Not below /tmp: a keeper has another one."""
    directory = Path(tempfile.mkdtemp(prefix="xclaw-guest-", dir="/var/tmp"))
    try:
        directory.chmod(0o755)
        program = directory / "qemu"
        program.write_text(HEAD + body)
        program.chmod(0o755)
        yield Wanted("tcg", str(program), str(directory), 1 << 28, 1, 1 << 28, 70_000)
    finally:
        shutil.rmtree(directory)
