"""What a keeper is told to be, and what it makes of it (standard library only)."""

import os
import platform
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from xclaw.sandbox.bubblewrap.arguments import Places, Version, arguments, write_settings
from xclaw.sandbox.bubblewrap.commands import Launch, RunningCommand
from xclaw.sandbox.linux import ground
from xclaw.sandbox.linux.call_filter import filter_program, has_filter
from xclaw.sandbox.linux.control_groups import Bounds, ControlGroup, make_group
from xclaw.sandbox.linux.first import FIRST
from xclaw.sandbox.linux.marks import GROUPS_FILE, MARK
from xclaw.sandbox.linux.trees import give, open_directory
from xclaw.sandbox.linux.watch import FULL, Watch

PROXY_PORT = 3128
_LITTLE = 65_536
"""How large a file may be that is written where there is too much already: there is room for removing only."""
_DATA_TIMES = 4
"""Without a control group a process may reserve so many times the memory that all together may use."""

Pairs = Sequence[tuple[str, str]]


class Order:
    """The fields of the first frame, by type."""

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        return cast("str", self._fields[name])

    def number(self, name: str) -> int:
        return cast("int", self._fields[name])

    def fraction(self, name: str) -> float:
        return cast("float", self._fields[name])

    def is_set(self, name: str) -> bool:
        return bool(self._fields[name])

    def version(self, name: str) -> Version:
        return tuple(cast("list[int]", self._fields[name]))

    def pairs(self, name: str) -> Pairs:
        return [(first, second) for first, second in cast("list[list[str]]", self._fields[name])]


@dataclass
class Place:
    """A sandbox that is ready for commands."""

    group: ControlGroup
    watch: Watch
    temporary: int
    """Descriptor of what is /tmp inside."""
    description: dict[str, object]
    _places: Places
    _launch: Launch
    _environment: Pairs
    _processes: int
    _has_network: bool
    _version: Version
    _claim: socket.socket | None

    def start(self, fields: dict[str, object], stdin: bytes) -> RunningCommand:
        """Raises `OSError`, `ValueError`."""
        if self.watch.is_full:
            raise ValueError(FULL)
        launch = replace(self._launch, file_bytes=_LITTLE) if self.watch.is_over else self._launch
        own = [(name, value) for name, value in cast("list[list[str]]", fields["environment"])]
        options = arguments(
            self._places, [*self._environment, *own], self._version, shares_network=self._has_network
        )
        command = [
            *("/bin/sh", "-c", FIRST, "sandbox", str(self._processes), cast("str", fields["directory"])),
            *cast("list[str]", fields["argv"]),
        ]
        return RunningCommand(launch, options, command, stdin)


def prepare(order: Order, handing: int) -> Place:
    """Become what the order says: the user, the view, the bounds. With a network, the socket that a proxy
    listens on inside goes out through descriptor `handing`.

    Raises:
        OSError: something of it is not possible here.
        ValueError: it could not be kept in.
    """
    home = Path(order.text("home"))
    group = make_group(order.text("name"), _bounds(order), home / GROUPS_FILE)
    settings = home / "etc"
    write_settings(settings)
    temporary = home / "tmp"
    temporary.mkdir(mode=0o700)
    mounts = order.pairs("mounts")
    sources = [order.text("workspace"), order.text("input"), str(temporary), str(settings)]
    sources += [order.text("bubblewrap"), *(source for source, _ in mounts)]
    uid = os.geteuid()
    claim = None
    if uid == 0:
        uid, claim = ground.claim_uid(order.number("uid_base"))
        sources = _as_user(uid, order.number("uid_base"), sources)
    has_users = ground.own_users(network=order.is_set("network"))
    if order.is_set("network"):
        _hand_over(has_users, handing)
    workspace, inputs, temporary_place, settings_place, program, *mounted = sources
    places = Places(
        workspace, inputs, temporary_place, settings_place,
        tuple((source, target) for source, (_, target) in zip(mounted, mounts, strict=True)),
    )  # fmt: skip
    held = [open_directory(workspace), open_directory(temporary_place)]
    memory = None if group.counted else order.number("memory_bytes")
    return Place(
        group=group,
        watch=Watch(held, order.number("disk_bytes"), memory),
        temporary=held[1],
        description=_description(uid, group, order),
        _places=places,
        _launch=_launch(order, group, program),
        _environment=order.pairs("environment"),
        _processes=order.number("processes"),
        _has_network=order.is_set("network"),
        _version=order.version("version"),
        _claim=claim,
    )


def _bounds(order: Order) -> Bounds:
    return Bounds(order.number("memory_bytes"), order.number("processes"), order.fraction("cpus"))


def _as_user(uid: int, first: int, sources: Sequence[str]) -> list[str]:
    """Stop being root. The workspace and /tmp are the new user's."""
    for source in (sources[0], sources[2]):
        directory = open_directory(source)
        give(directory, uid, range(first, first + ground.UIDS))
        os.close(directory)
    places = ground.own_view(sources)
    ground.become(uid)
    return places


def _hand_over(has_users: bool, handing: int) -> None:
    if not has_users:
        raise ValueError(
            "a network needs user namespaces that this user may make itself, which is not allowed here"
        )
    listening = ground.listen_inside(PROXY_PORT)
    with socket.socket(fileno=handing) as line:
        socket.send_fds(line, [b"l"], [listening.fileno()])
    listening.close()


def _launch(order: Order, group: ControlGroup, program: str) -> Launch:
    machine = platform.machine()
    if not has_filter(machine):
        raise ValueError(f"there is no filter of system calls for {machine} machines")
    memory = order.number("memory_bytes")
    return Launch(
        program=program,
        mark=(MARK, order.text("name")),
        group=group,
        filter=filter_program(machine, counted=group.counted, timed=group.timed),
        file_bytes=order.number("disk_bytes"),
        data_bytes=None if group.counted else memory * _DATA_TIMES,
        processors=frozenset() if group.timed else _processors(order.fraction("cpus")),
    )


def _processors(cpus: float) -> frozenset[int]:
    """As many as are needed, not the same for all sandboxes."""
    there = sorted(os.sched_getaffinity(0))
    wanted = min(max(-int(-cpus // 1), 1), len(there))
    first = os.getpid() % len(there)
    return frozenset((there * 2)[first : first + wanted])


def _description(uid: int, group: ControlGroup, order: Order) -> dict[str, object]:
    return {"uid": uid, "counted": group.counted, "timed": group.timed, "network": order.is_set("network")}
