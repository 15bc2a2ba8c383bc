"""Which backend is used: the one that was asked for, or the strongest that works, or none."""

import asyncio
import os
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from xclaw.contracts.errors import SandboxUnavailable
from xclaw.contracts.sandbox import STRONGEST_FIRST, Probe, SandboxBackend, SandboxChoice

_probes: WeakKeyDictionary[SandboxBackend, tuple[int, Probe]] = WeakKeyDictionary()
"""By backend, with the process that found it out: what holds for one need not hold for a child of it."""


async def probed(backend: SandboxBackend) -> Probe:
    """The probe of a backend, which is made once per process and backend object."""
    known = _probes.get(backend)
    if known is not None and known[0] == os.getpid():
        return known[1]
    probe = await backend.probe()
    _probes[backend] = (os.getpid(), probe)
    return probe


async def probe_all(backends: Sequence[SandboxBackend]) -> tuple[Probe, ...]:
    """What works here and what does not, in the order of `backends`."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(probed(backend)) for backend in backends]
    return tuple(task.result() for task in tasks)


async def choose(choice: SandboxChoice, backends: Sequence[SandboxBackend]) -> SandboxBackend:
    """The backend that was asked for; for "auto" the strongest that a probe shows to work, never "host"
    and never "tcg".

    Raises:
        SandboxUnavailable: it does not work here, or none does; with the reason of each that was tried.
    """
    there = {backend.name: backend for backend in backends}
    wanted = STRONGEST_FIRST if choice == "auto" else (choice,)
    reasons: list[str] = []
    for name in wanted:
        backend = there.get(name)
        if backend is None:
            reasons.append(f"{name}: not part of this installation")
            continue
        probe = await probed(backend)
        if probe.works:
            return backend
        reasons.append(f"{name}: {probe.detail.rstrip('.')}")
    if choice != "auto":
        raise SandboxUnavailable(
            f"The sandbox {choice!r} does not work here. {'; '.join(reasons)}. "
            "Nothing weaker is used in its place. `xclaw doctor` shows which sandboxes work."
        )
    raise SandboxUnavailable(
        f"No sandbox works here. {'; '.join(reasons)}. "
        "Install bubblewrap (apt-get install bubblewrap), or work without a sandbox: `--mode host`."
    )
