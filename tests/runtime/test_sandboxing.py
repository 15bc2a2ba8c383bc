"""The sandbox of a run: started once, when it is needed, and gone with the run (SPEC F3)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

import pytest

from sandbox.pool_backends import NOTHING, NotedBackend, NotedSandbox, pool_of, settled, unheard
from xclaw.contracts.agents import Limits
from xclaw.contracts.errors import SandboxLost, SandboxUnavailable, UsageError
from xclaw.contracts.events import RunStarted
from xclaw.contracts.sandbox import BackendName, Sandboxes
from xclaw.runtime import sandboxing
from xclaw.runtime.sandboxing import RunSandbox, backend_of, lost_sandbox, refuse_weaker
from xclaw.sandbox.host import HostSandboxes
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


def ran(scenario: Coroutine[None, None, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await scenario

    asyncio.run(main())


def run_sandbox(root: Path, sandboxes: Sandboxes) -> RunSandbox:
    workspaces = LocalWorkspaces(WorkspaceSettings(str(root), mode="full", durable=False))
    return RunSandbox(sandboxes, workspaces.open("coder", "abc123", "run-1"), "abc123")


def test_it_is_started_once_at_the_first_call_and_closed_with_the_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        own = run_sandbox(tmp_path, pool_of(backend))
        assert backend.made == []
        async with asyncio.TaskGroup() as group:
            opened = [group.create_task(own.open()) for _ in range(5)]
        assert len(backend.made) == 1
        assert len({id(task.result()) for task in opened}) == 1
        spec = backend.made[0].spec
        assert spec is not None
        assert Path(spec.workspace).is_dir()
        assert Path(spec.input).is_dir()
        assert spec.task_id == "abc123"
        await own.close()
        await own.close()
        assert backend.made[0].is_closed
        assert not Path(spec.input).exists()
        assert Path(spec.workspace).is_dir()
        with pytest.raises(SandboxLost):
            await own.open()

    ran(scenario())


def test_a_run_that_needs_none_starts_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        await run_sandbox(tmp_path, pool_of(backend)).close()
        assert backend.made == []
        assert list(tmp_path.iterdir()) == []

    ran(scenario())


def test_a_start_that_is_cancelled_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        backend.may_start = asyncio.Event()
        own = run_sandbox(tmp_path, pool_of(backend, max_open=1))
        starting = asyncio.create_task(own.open())
        await settled()
        starting.cancel()
        await asyncio.wait([starting])
        assert starting.cancelled()
        backend.may_start.set()
        sandbox = await own.open()
        assert (await sandbox.exec(NOTHING, unheard)).code == 0
        await own.close()
        assert not backend.open

    ran(scenario())


def test_the_end_of_a_run_is_not_held_up_by_its_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """K3."""
    monkeypatch.setattr(sandboxing, "CLOSE_S", 0.05)

    async def scenario() -> None:
        backend = NotedBackend()
        own = run_sandbox(tmp_path, pool_of(backend))
        await own.open()
        backend.made[0].may_close = asyncio.Event()
        await own.close()
        assert "did not end as it should" in caplog.text
        backend.made[0].may_close.set()

    ran(scenario())


class BrokenSandbox(NotedSandbox):
    async def close(self) -> None:
        raise RuntimeError("it cannot be closed")


class BrokenBackend(NotedBackend):
    async def make(self) -> NotedSandbox:
        return BrokenSandbox(0)


def test_a_sandbox_that_cannot_be_closed_is_no_failure_of_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        own = run_sandbox(tmp_path, pool_of(BrokenBackend()))
        await own.open()
        await own.close()
        assert "it cannot be closed" in caplog.text

    ran(scenario())


def test_host_mode_has_no_backend() -> None:
    async def scenario() -> None:
        assert await backend_of(HostSandboxes()) is None
        assert await backend_of(pool_of(NotedBackend())) == "kvm"

    ran(scenario())


@pytest.mark.parametrize(
    ("began", "now", "allowed"),
    [
        ("", None, True),
        ("", "bubblewrap", False),
        ("bubblewrap", None, False),
        ("bubblewrap", "bubblewrap", True),
        ("bubblewrap", "kvm", True),
        ("kvm", "bubblewrap", False),
        ("container", "host", False),
        ("bubblewrap", "container", False),
        ("host", "bubblewrap", True),
    ],
)
def test_a_tree_is_taken_up_with_the_same_or_more_around_it(
    began: BackendName, now: BackendName | None, allowed: bool
) -> None:
    started = RunStarted("coder", "do", "user", 0, "", (), (), "native", Limits(), sandbox=began)
    if allowed:
        refuse_weaker(started, now)
    else:
        with pytest.raises(UsageError, match="take it up with"):
            refuse_weaker(started, now)


def test_a_lost_sandbox_is_found_among_failures_of_calls_that_ran_at_once() -> None:
    lost = SandboxLost("gone")
    inner = ExceptionGroup("calls", [ValueError("another"), lost])
    for failure in (lost, inner, ExceptionGroup("outer", [inner])):
        assert lost_sandbox(failure) is lost
    assert lost_sandbox(ExceptionGroup("calls", [ValueError("x")])) is None
    assert isinstance(lost_sandbox(SandboxUnavailable("none")), SandboxUnavailable)
