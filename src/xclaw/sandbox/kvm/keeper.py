"""The process between xclaw and one virtual machine (standard library only): orders come as JSON lines on
standard input, reports go as JSON lines to standard output.

It owns the machine's user id, its view of the file system, and its end: when its input ends or its parent
dies, it kills QEMU; when it is killed itself, QEMU dies with it.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
from collections import deque
from collections.abc import Mapping
from typing import NoReturn, cast

from xclaw.sandbox.kvm.command_line import Machine, Share, command_line
from xclaw.sandbox.kvm.view import IMAGE, READABLE, WRITABLE, View
from xclaw.sandbox.linux import ground
from xclaw.sandbox.linux.held import descendants
from xclaw.sandbox.linux.trees import Unmeasurable, give
from xclaw.sandbox.linux.watch import Watch

CONSOLE_BYTES = 4_096
"""How much of what the machine said last is kept."""
_IDLE_MS = 1_000
_READ = 65_536
_OPEN_FILES, _TASKS = 4_096, 1_024

Order = Mapping[str, object]


def _text(order: Order, name: str) -> str:
    return cast("str", order[name])


def _number(order: Order, name: str) -> int:
    return cast("int", order[name])


def report(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Keeper:
    """Of one machine, from its start to its end."""

    def __init__(self, order: Order) -> None:
        """Starts QEMU. Raises `OSError`."""
        self._parent = _number(order, "parent")
        self._uid: int | None = None
        if os.geteuid() == 0:
            self._uid, self._claim = ground.claim_uid(_number(order, "uid_base"))
        else:
            ground.own_users(network=False)
        self._view = View()
        self._watch: Watch | None = None
        self._watching = False
        self._console: deque[bytes] = deque(maxlen=CONSOLE_BYTES // 64)
        self._orders = bytearray()
        self.status: int | None = None
        os.close(self._view.bind(_text(order, "image"), IMAGE))
        if order["accelerator"] == "kvm" and self._uid is not None:
            self._view.lend_device("/dev/kvm", self._uid)
        self._woken = ground.woken_by_children()
        self._log, log = os.pipe()
        os.set_blocking(self._log, False)
        self.qemu = self._start(order, log)
        os.close(log)
        os.close(_number(order, "line"))
        report(started=self.qemu, uid=os.getuid() if self._uid is None else self._uid)

    def _start(self, order: Order, log: int) -> int:
        line = _number(order, "line")
        machine = Machine(
            "kvm" if order["accelerator"] == "kvm" else "tcg",
            _number(order, "memory_bytes"),
            _number(order, "cpus"),
            IMAGE,
            (Share("writable", WRITABLE, True), Share("readable", READABLE, False)),
            line,
        )
        argv = command_line(_text(order, "program"), machine)
        keeper = os.getpid()
        process = os.fork()
        if process == 0:
            try:
                self._become_qemu(argv, (line, log), keeper, _number(order, "disk_bytes"))
            except OSError as error:
                os.write(2, f"QEMU cannot be started: {error}\n".encode())
            finally:
                os._exit(127)
        return process

    def _become_qemu(self, argv: list[str], kept: tuple[int, int], keeper: int, disk_bytes: int) -> NoReturn:
        """In the forked process. The machine's own user has no right that anybody else has not."""
        line, log = kept
        empty = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((empty, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.set_inheritable(line, True)
        for number in range(signal.SIGRTMAX + 1):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(
            signal.SIGXFSZ, signal.SIG_IGN
        )  # a file that is too large fails the write, not the machine
        ground.bound(resource.RLIMIT_CORE, 0)
        ground.bound(resource.RLIMIT_NOFILE, _OPEN_FILES)
        ground.bound(resource.RLIMIT_FSIZE, disk_bytes)
        ground.bound(resource.RLIMIT_MEMLOCK, 0)
        if self._uid is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (_TASKS, _TASKS))
            ground.become(self._uid)
        os.chdir("/")
        ground.die_with_parent(keeper, signal.SIGKILL)
        os.closerange(3, line)
        os.closerange(line + 1, _OPEN_FILES)
        os.execve(argv[0], argv, {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/"})

    def run(self) -> None:
        """Until QEMU ends, or nobody wants it any more."""
        poll = select.poll()
        for descriptor in (0, self._woken, self._log):
            poll.register(descriptor, select.POLLIN)
        while os.getppid() == self._parent:
            for descriptor, _ in poll.poll(self._wait_ms()):
                if descriptor == self._woken:
                    os.read(self._woken, 512)
                elif descriptor == self._log:
                    if self._read_log() == 0:
                        poll.unregister(self._log)
                elif not self._read_orders():
                    return
            self._look()
            if self._reap():
                return

    def end(self) -> None:
        """Kill QEMU, if it has not ended, and say what became of it."""
        if self.status is None:
            os.kill(self.qemu, signal.SIGKILL)
            _, self.status = os.waitpid(self.qemu, 0)
        while self._read_log():
            pass
        code = os.waitstatus_to_exitcode(self.status)
        text = b"".join(self._console)[-CONSOLE_BYTES:].decode("utf-8", "replace")
        with contextlib.suppress(BrokenPipeError):
            report(ended=code, console=text)

    def _wait_ms(self) -> float:
        if self._watching and self._watch is not None:
            return min(_IDLE_MS, self._watch.due_s() * 1_000)
        return _IDLE_MS

    def _look(self) -> None:
        if self._watching and self._watch is not None and self._watch.due_s() == 0.0:
            reason = self._watch.over(descendants(os.getpid()))
            if reason:
                self._watching = False
                report(over=reason)

    def _reap(self) -> bool:
        """Whether QEMU has ended."""
        with contextlib.suppress(ChildProcessError):
            process, status = os.waitpid(self.qemu, os.WNOHANG)
            if process:
                self.status = status
        return self.status is not None

    def _read_log(self) -> int | None:
        """How many bytes there were; 0 at the end, None while there are none. In small pieces, of which
        the last are kept."""
        try:
            chunk = os.read(self._log, _READ)
        except BlockingIOError:
            return None
        self._console.extend(
            chunk[at : at + 64] for at in range(max(0, len(chunk) - CONSOLE_BYTES), len(chunk), 64)
        )
        return len(chunk)

    def _read_orders(self) -> bool:
        content = os.read(0, _READ)
        self._orders += content
        while (end := self._orders.find(b"\n")) >= 0:
            line = bytes(self._orders[:end])
            del self._orders[: end + 1]
            self._obey(cast("Order", json.loads(line)))
        return bool(content)

    def _obey(self, order: Order) -> None:
        what = order["op"]
        if what == "take":
            try:
                self._take(order)
            except (OSError, Unmeasurable) as error:
                report(refused=str(error))
            else:
                report(taken=True)
        elif what == "begin" and self._watch is not None:
            self._watch.begin()
            self._watching = True
        elif what == "settle" and self._watch is not None:
            self._watching = False
            report(settled=self._watch.settle())

    def _take(self, order: Order) -> None:
        """Bind the directories of one task to where the guest will look for them."""
        workspace = self._view.bind(_text(order, "workspace"), f"{WRITABLE}/workspace")
        given = self._view.bind(_text(order, "input"), f"{READABLE}/input")
        for index, source in enumerate(cast("list[str]", order["mounts"])):
            os.close(self._view.bind(source, f"{READABLE}/{index}"))
        if self._uid is not None:
            give(workspace, self._uid)
        os.close(given)
        self._watch = Watch([workspace], _number(order, "disk_bytes"), None)


def main() -> None:
    """The first line of standard input says what machine it is."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # xclaw says when it is over
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        line += byte
    try:
        keeper = Keeper(cast("Order", json.loads(bytes(line))))
    except OSError as error:
        report(refused=str(error))
        return
    try:
        keeper.run()
    finally:
        keeper.end()
