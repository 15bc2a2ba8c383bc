"""A workflow script reaches nothing but its own memory and the functions it was given: known ways out of
restricted Pythons, and each layer behind the check of the syntax on its own."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patterns.workflow_scene import Scene
from xclaw.contracts.errors import ToolFailed
from xclaw.patterns.workflows.lockdown import has_filter
from xclaw.patterns.workflows.settings import WorkflowSettings

ROOT = str(Path(__file__).parents[2] / "src")

ESCAPES = {
    "the classic chain": "().__class__.__base__.__subclasses__()",
    "a chain by a name": "type(1).mro()[-1]",
    "mro of a class that is there": "int.mro()",
    "globals of a function": "agent.__globals__",
    "code of a function": "agent.__code__",
    "closure": "agent.__closure__",
    "a bound method's self": "print.__self__",
    "a format string": "'{0.__class__}'.format(1)",
    "format_map": "'{x}'.format_map({'x': 1})",
    "an f-string": "f'{().__class__}'",
    "a nested f-string": "f'{1:{().__class__}}'",
    "full-width letters": "().\uff3f\uff3fclass\uff3f\uff3f",
    "import": "import os",
    "import of a part": "import json.decoder",
    "import from": "from os import system",
    "relative import": "from . import x",
    "import of everything": "from json import *",
    "import as an underscore name": "import json as __builtins__",
    "builtins": "__builtins__['open']",
    "__import__": "__import__('os')",
    "a generator's frame": "(x for x in [1]).gi_frame.f_back.f_builtins",
    "a generator's code": "(x for x in [1]).gi_code",
    "a coroutine": "async def f():\n    pass",
    "await": "await agent('coder', 'x')",
    "a traceback": "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame",
    "with_traceback": "ValueError().with_traceback(None)",
    "tb_frame": "x = 1\nx.tb_frame",
    "except star": "try:\n    pass\nexcept* ValueError:\n    pass",
    "a class": "class X:\n    pass",
    "a class with a metaclass": "class X(metaclass=print):\n    pass",
    "a class pattern": "match 1:\n    case int(__class__=c):\n        pass",
    "a class pattern without dunder": "match 1:\n    case int(real=c):\n        pass",
    "a mapping's rest": "match {}:\n    case {**__builtins__}:\n        pass",
    "a star's name": "match []:\n    case [*__x__]:\n        pass",
    "a decorator": "@print\ndef f():\n    pass",
    "with": "with open('x') as f:\n    pass",
    "assigning to an attribute": "json.dumps = 1",
    "deleting an attribute": "del json.dumps",
    "a loop over an attribute": "for json.dumps in [1]:\n    pass",
    "a keyword of dunders": "dict(__class__=1)",
    "an argument of dunders": "def f(__class__):\n    pass",
    "a function of dunders": "def __build_class__():\n    pass",
    "global of dunders": "def f():\n    global __builtins__",
    "an exception's name": "try:\n    1/0\nexcept Exception as __x__:\n    pass",
    "a walrus of dunders": "(__x__ := 1)",
    "the inner name of last": "_last = 1",
    "the inner name of finish": "_finish(1)",
    "another meaning of agent": "agent = print",
    "another meaning of parallel, as an argument": "def f(parallel):\n    pass",
}
MISSING = [
    "\uff45val('1')", "open('/etc/passwd')", "eval('1')", "exec('1')", "compile('1', '', 'eval')", "getattr(1, 'real')",
    "setattr(1, 'a', 1)", "vars()", "dir()", "globals()", "locals()", "type(1)", "object()", "super()",
    "input()", "breakpoint()", "help()", "memoryview(b'')", "classmethod(print)", "property(print)",
    "BaseException()", "SystemExit()", "json.codecs", "json.decoder", "re.enum", "re.sys", "math.os",
    "collections.abc", "functools.sys",
]  # fmt: skip
"""Names that a script may write, and that are not there."""


@pytest.mark.parametrize("name", ESCAPES)
def test_a_known_escape_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with pytest.raises(ToolFailed, match=r"cannot run: (line|syntax)"):
        scene.run("agent('coder', 'first')\n" + ESCAPES[name])
    assert scene.spawn.tasks == []


def test_what_is_not_offered_is_not_there(tmp_path: Path) -> None:
    tries = "".join(
        f"try:\n    {'import collections, functools; ' if '.' in each else ''}{each}\n    found.append({each!r})\n"
        "except (AttributeError, Exception) as e:\n    missed.append(str(e))\n"
        for each in MISSING
    )
    answer = Scene(tmp_path).result(f"found = []\nmissed = []\n{tries}\n[found, len(missed)]")
    assert answer == [[], len(MISSING)]


@pytest.mark.parametrize(
    "script",
    [
        "~" * 30_000 + "1",
        "not " * 9_000 + "1",
        "(" * 20_000,
        "[" * 3_000 + "]" * 3_000,
        "1" + "+1" * 15_000,
        "a" + ".a" * 15_000,
        "a" + "[0]" * 12_000,
        "lambda: " * 4_000 + "1",
        "x = " * 9_000 + "1",
        "1 if 1 else " * 3_000 + "1",
        "f'" + "{1:" * 900 + "}" * 900 + "'",
        "".join(" " * depth + "if 1:\n" for depth in range(90)) + " " * 90 + "pass",
        "\x00",
        "9" * 30_000,
        "'\\ud800'",
        "def f(" + ", ".join(f"a{n}" for n in range(5_000)) + "):\n    pass",
    ],
)
def test_a_script_that_breaks_parsers_breaks_its_own_interpreter_at_most(script: str, tmp_path: Path) -> None:
    """The case where the check itself is attacked: whatever comes of it, it is an answer."""
    scene = Scene(tmp_path)
    try:
        record = scene.run(script)
    except ToolFailed as failure:
        said = str(failure)
    else:
        said = str(record["status"])
    assert re.match("success|error|the script c", said)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("x = 'a' * 10**10", "MemoryError"),
        ("x = [0] * 10**9", "MemoryError"),
        ("x = []\nwhile True:\n    x = [x, x * 2]", "(MemoryError|killed)"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("9 ** 9 ** 9", "processor time"),
        ("re.match('(a+)+b', 'a' * 40)", "processor time"),
    ],
)
def test_what_a_script_wastes_is_bounded(script: str, reason: str, tmp_path: Path) -> None:
    record = Scene(tmp_path, settings=WorkflowSettings(processor_s=1, memory_bytes=300_000_000)).run(script)
    assert record["status"] == "error"
    assert re.search(reason, str(record["reason"])), record


def test_a_script_that_talks_without_end_is_stopped(tmp_path: Path) -> None:
    record = Scene(tmp_path).run("while True:\n    log('x' * 100)")
    assert record["status"] == "error"
    assert "said more than" in str(record["reason"])
    assert len(str(record)) < 50_000


def test_an_answer_that_is_too_long_is_none(tmp_path: Path) -> None:
    record = Scene(tmp_path).run("'x' * 3_000_000")
    assert record["status"] == "error"
    assert "characters" in str(record["reason"])
    assert "at once" in str(Scene(tmp_path).run("'x' * 30_000_000")["reason"])


CLOSED = """
import sys
sys.path.append({root!r})
import ctypes, os, signal, socket, subprocess, threading
from xclaw.patterns.workflows import lockdown
from xclaw.patterns.workflows.threads import Workers
code = sys.stdin.read()
compiled = compile(code, "attack", "exec")
lockdown.prepare()
workers = Workers(2)
hook = lockdown.lock_down(1_000_000_000, 5, lambda event: os._exit(78))
{arm}
exec(compiled, globals())
os.write(1, b"ESCAPED")
os._exit(0)
"""


def attack(code: str, *, armed: bool) -> subprocess.CompletedProcess[bytes]:
    """Code that is free to do what it likes in a closed interpreter; `armed`: behind the audit hook too."""
    start = CLOSED.format(root=ROOT, arm="hook.arm()" if armed else "")
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start],
        input=code.encode(),
        capture_output=True,
        timeout=30,
        check=False,
    )


ATTACKS = {
    "reads a file": "os.open('/etc/passwd', os.O_RDONLY)",
    "reads a file in a thread that is older": (
        "workers._waiting.put(lambda: os.open('/etc/passwd', os.O_RDONLY)); threading.Event().wait(20)"
    ),
    "lists a directory": "os.listdir('/')",
    "looks at a file": "os.stat('/')",
    "changes its directory": "os.chdir('/tmp')",
    "removes a file": "os.unlink('/tmp/no-such-file')",
    "opens a socket": "socket.socket()",
    "makes a pair of sockets": "socket.socketpair()",
    "forks": "os.fork()",
    "runs a program": "os.execv('/bin/true', ['true'])",
    "runs a shell": "subprocess.run(['true'])",
    "starts a thread": "threading.Thread(target=print).start()",
    "kills its parent": "os.kill(os.getppid(), 9)",
    "asks who it is": "os.getuid()",
    "makes a pipe": "os.pipe()",
    "doubles a descriptor": "os.dup(1)",
    "raises its limits": "lockdown.resource.setrlimit(lockdown.resource.RLIMIT_NOFILE, (99, 99))",
    "loads a library": "ctypes.CDLL('/no/such/library.so')",
    "traces": "ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
    "maps memory that runs": "import mmap",
    "makes memory run": (
        "libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; libc.mmap(None, 4096, 7, 0x22, -1, 0)"
    ),
    "makes old memory run": "ctypes.CDLL(None).mprotect(ctypes.c_void_p(0), 4096, 5)",
    "speaks x32": "ctypes.CDLL(None).syscall(0x40000000 + 39)",
    "makes a key": "ctypes.CDLL(None).syscall(248, 0, 0, 0)",
    "makes a ring": "ctypes.CDLL(None).syscall(425, 1, 0)",
    "lifts the filter": "ctypes.CDLL(None).prctl(22, 0, 0, 0, 0)",
}


@pytest.mark.skipif(not has_filter(), reason="no filter of system calls on this machine")
@pytest.mark.parametrize("name", ATTACKS)
def test_the_filter_alone_ends_whoever_got_out_of_python(name: str) -> None:
    done = attack(ATTACKS[name], armed=False)
    assert b"ESCAPED" not in done.stdout, done
    python_said_no = b"ModuleNotFoundError" in done.stderr
    assert done.returncode == -signal.SIGSYS or python_said_no, done


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd')",
        "os.listdir('/')",
        "socket.socket()",
        "subprocess.run(['true'])",
        "compile('1', 'x', 'eval')",
        "exec('1')",
        "sys._getframe()",
        "ctypes.CDLL(None)",
        "ctypes.string_at(0)",
        "os.fork()",
        "import this",
        "sys.addaudithook(print)",
        "(lambda: 1).__code__",
    ],
)
def test_the_audit_hook_alone_ends_whoever_got_past_the_check(code: str) -> None:
    done = attack(code, armed=True)
    assert b"ESCAPED" not in done.stdout
    assert done.returncode == 78, done


def test_a_closed_interpreter_still_computes_and_writes() -> None:
    """The other side of the tests above: they can fail."""
    done = attack("x = sorted(str(n) for n in range(100_000)); y = 'x' * 50_000_000", armed=False)
    assert done.stdout == b"ESCAPED", done
