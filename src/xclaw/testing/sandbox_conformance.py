"""What any `Sandbox` must do (SPEC F3), whatever keeps commands in.

    @pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=check_name)
    def test_conforms(check: SandboxCheck) -> None:
        asyncio.run(check(open_sandbox))

Most checks can share one sandbox with `POLICY`, which matters where starting one takes seconds; those that end
theirs, or use it up, are `ENDING_CHECKS`. Commands are `/bin/sh` and what stands beside it on any system. Every
check reads a word back that only a command inside can have said: a sandbox that was never reached fails.
"""

import asyncio
import os
import secrets
import time
from pathlib import Path

from xclaw.contracts.sandbox import SandboxCommand
from xclaw.testing.sandbox_file_checks import FILE_CHECKS
from xclaw.testing.sandbox_harness import (
    POLICY,
    WAIT_S,
    Opened,
    OpenSandbox,
    SandboxCheck,
    lost,
    refused,
    run_inside,
)

SHELL_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_", "XCLAW_COMMAND"}
QUIET_VARIABLES = {
    "LANG", "TERM", "NO_COLOR", "PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_TERMINAL_PROMPT",
    "DEBIAN_FRONTEND",
}  # fmt: skip


async def check_exit_codes_are_those_of_a_shell(open_sandbox: OpenSandbox) -> None:
    """0, what the command says, and 128 and the signal."""
    async with open_sandbox(POLICY) as opened:
        for script, code in (("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)):
            said = await run_inside(opened.sandbox, script)
            assert (said.exit.ended, said.exit.code) == ("exited", code), script
            assert said.output == b"", said.text


async def check_output_comes_while_the_command_runs(open_sandbox: OpenSandbox) -> None:
    """Both streams: what is said first is there before the command goes on."""
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        go = opened.workspace / f"go-{secrets.token_hex(4)}"
        heard = bytearray()
        first = asyncio.Event()

        def hear(piece: bytes) -> None:
            heard.extend(piece)
            if b"one" in heard:
                first.set()

        script = f"echo one >&2; until [ -e {go.name} ]; do sleep 0.02; done; echo two"
        command = SandboxCommand(("/bin/sh", "-c", script), WAIT_S)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(opened.sandbox.exec(command, hear))
            await first.wait()
            assert b"two" not in heard
            assert not running.done()
            go.write_text("")
        assert bytes(heard) == b"one\ntwo\n"


async def check_input_reaches_the_command(open_sandbox: OpenSandbox) -> None:
    """Any bytes, more than a pipe holds; without input there is its end; unread input is no problem."""
    content = bytes(range(256)) * 700
    async with open_sandbox(POLICY) as opened:
        said = await run_inside(opened.sandbox, "cat", stdin=content)
        assert said.output == content
        assert (await run_inside(opened.sandbox, "cat; echo end")).output == b"end\n"
        assert (await run_inside(opened.sandbox, "echo done", stdin=content)).output == b"done\n"


async def check_there_is_no_terminal(open_sandbox: OpenSandbox) -> None:
    async with open_sandbox(POLICY) as opened:
        script = (
            "for n in 0 1 2; do [ -t $n ] && echo $n is one; done; (: </dev/tty) 2>/dev/null && echo there; :"
        )
        assert (await run_inside(opened.sandbox, script)).output == b""


async def check_any_bytes_come_out(open_sandbox: OpenSandbox) -> None:
    async with open_sandbox(POLICY) as opened:
        said = await run_inside(opened.sandbox, r"printf '\377\000\376\n\303'")
        assert said.output == b"\xff\x00\xfe\n\xc3"


async def check_a_command_ends_at_its_time(open_sandbox: OpenSandbox) -> None:
    """By the host's clock, also when it ignores being asked; what it said before is there."""
    async with open_sandbox(POLICY) as opened:
        started = time.monotonic()
        script = "trap '' TERM INT HUP; echo before; while :; do sleep 1; done"
        said = await run_inside(opened.sandbox, script, timeout_s=0.7)
        assert (said.exit.ended, said.exit.code) == ("timeout", None)
        assert said.output.startswith(b"before\n")
        assert 0.6 < said.exit.duration_s < WAIT_S
        assert time.monotonic() - started < WAIT_S


async def check_nothing_outlives_a_command(open_sandbox: OpenSandbox) -> None:
    """What a command put into the background, in a session of its own, too, ends with it, or with its time."""
    async with open_sandbox(POLICY) as opened:
        for ending, timeout_s in (("exit 0", WAIT_S), ("while :; do sleep 1; done", 1.0)):
            beat = opened.workspace / f"beat-{secrets.token_hex(4)}"
            loop = f"while :; do echo x >>{beat.name}; sleep 0.02; done"
            script = (
                f"({loop}) & setsid sh -c '{loop}' >/dev/null 2>&1 </dev/null & "
                f"until [ -s {beat.name} ]; do sleep 0.02; done; {ending}"
            )
            await run_inside(opened.sandbox, script, timeout_s=timeout_s)
            await _is_still(opened, beat)


async def check_cancelling_ends_everything(open_sandbox: OpenSandbox) -> None:
    """A cancelled command is gone with what it started, and the sandbox goes on."""
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        beat = opened.workspace / f"beat-{secrets.token_hex(4)}"
        loop = f"while :; do echo x >>{beat.name}; sleep 0.02; done"
        script = f"trap '' TERM; setsid sh -c '{loop}' & echo up; {loop}"
        up = asyncio.Event()
        command = SandboxCommand(("/bin/sh", "-c", script), WAIT_S)
        running = asyncio.create_task(opened.sandbox.exec(command, lambda _piece: up.set()))
        await up.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        await _is_still(opened, beat)
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"


async def _is_still(opened: Opened, beat: Path) -> None:
    """Nothing writes to a file any more."""
    before = beat.stat().st_size if beat.exists() else 0
    await run_inside(opened.sandbox, "sleep 0.3")
    assert (beat.stat().st_size if beat.exists() else 0) == before


async def check_commands_wait_for_each_other(open_sandbox: OpenSandbox) -> None:
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        log = f"log-{secrets.token_hex(4)}"
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                script = f"echo {name} >>{log}; sleep 0.1; echo {name} >>{log}"
                group.create_task(run_inside(opened.sandbox, script))
        lines = (opened.workspace / log).read_text().split()
        assert len(lines) == 6
        assert lines[::2] == lines[1::2], lines


async def check_much_output_is_bounded(open_sandbox: OpenSandbox) -> None:
    """On both streams together; the rest is counted, and nobody waits for it."""
    size = 3_000_000
    async with open_sandbox(POLICY) as opened:
        script = f"yes abcdefg | head -c {size} & yes 1234567 | head -c {size} >&2; wait; exit 4"
        said = await run_inside(opened.sandbox, script)
        assert said.exit.code == 4
        assert len(said.output) <= POLICY.output_bytes
        assert len(said.output) > POLICY.output_bytes // 2
        assert 2 * size - POLICY.output_bytes <= said.exit.dropped_bytes <= 2 * size


async def check_the_environment_is_the_policys(open_sandbox: OpenSandbox) -> None:
    """Nothing of xclaw's own environment is there; a command's own variables are, for that command."""
    os.environ["XCLAW_CONFORMANCE_SECRET"] = "sk-secret"
    try:
        async with open_sandbox(POLICY) as opened:
            command = SandboxCommand(("/usr/bin/env",), WAIT_S, environment=(("MINE", "a b"),))
            output = bytearray()
            await opened.sandbox.exec(command, output.extend)
            lines = output.decode().splitlines()
            found = dict(line.split("=", 1) for line in lines)
            assert found.pop("TEAM") == "blue"
            assert found.pop("MINE") == "a b"
            assert found.pop("PATH")
            assert found.pop("HOME")
            assert set(found) <= QUIET_VARIABLES | SHELL_VARIABLES, found
            assert "MINE" not in (await run_inside(opened.sandbox, "env")).text
    finally:
        del os.environ["XCLAW_CONFORMANCE_SECRET"]


async def check_what_cannot_start_is_refused(open_sandbox: OpenSandbox) -> None:
    """With a reason, and the sandbox goes on."""
    async with open_sandbox(POLICY) as opened:
        sandbox = opened.sandbox
        for argv in ((), ("",), ("no-such-program-here",), ("sh\0",), ("sh", "-c", "\ud800")):
            assert await refused(sandbox.exec(SandboxCommand(argv, 5.0), bytearray().extend)), argv
        for directory in ("/workspace/none", "/nowhere"):
            command = SandboxCommand(("true",), WAIT_S, directory=directory)
            assert await refused(sandbox.exec(command, bytearray().extend)), directory
        for timeout_s in (0.0, -1.0, float("nan")):
            assert await refused(sandbox.exec(SandboxCommand(("true",), timeout_s), bytearray().extend))
        assert (await run_inside(sandbox, "echo on")).output == b"on\n"


async def check_words_of_a_command_are_kept_apart(open_sandbox: OpenSandbox) -> None:
    async with open_sandbox(POLICY) as opened:
        words = ("a b", "", "$HOME", "'", '"', "\\", "-n", "é", "*")
        output = bytearray()
        command = SandboxCommand(("printf", "[%s]", *words), WAIT_S)
        await opened.sandbox.exec(command, output.extend)
        assert output.decode() == "".join(f"[{word}]" for word in words)


async def check_closing_ends_it(open_sandbox: OpenSandbox) -> None:
    """Twice does no harm; nothing runs in it any more; the workspace stays."""
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        await run_inside(opened.sandbox, "echo kept >kept")
        async with asyncio.TaskGroup() as group:
            group.create_task(opened.sandbox.close())
            group.create_task(opened.sandbox.close())
        await opened.sandbox.close()
        await lost(opened.sandbox.exec(SandboxCommand(("true",), 5.0), bytearray().extend))
        await lost(opened.sandbox.put("x", b""))
        await lost(opened.sandbox.get("kept"))
        assert (opened.workspace / "kept").read_text() == "kept\n"


async def check_closing_ends_a_running_command(open_sandbox: OpenSandbox) -> None:
    """Who waits for the command, or for a turn, is told."""
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        up = asyncio.Event()
        command = SandboxCommand(("/bin/sh", "-c", "echo up; sleep 600"), WAIT_S)
        running = asyncio.create_task(lost(opened.sandbox.exec(command, lambda _piece: up.set())))
        await up.wait()
        waiting = asyncio.create_task(lost(opened.sandbox.get("x")))
        await opened.sandbox.close()
        await running
        await waiting


async def check_loss_is_told(open_sandbox: OpenSandbox) -> None:
    """A sandbox that is killed: who waits is told, so is who comes later."""
    async with open_sandbox(POLICY) as opened, asyncio.timeout(WAIT_S):
        if opened.kill is None:
            return
        up = asyncio.Event()
        command = SandboxCommand(("/bin/sh", "-c", "echo up; sleep 600"), WAIT_S)
        running = asyncio.create_task(lost(opened.sandbox.exec(command, lambda _piece: up.set())))
        await up.wait()
        opened.kill()
        await running
        await lost(opened.sandbox.exec(SandboxCommand(("true",), 5.0), bytearray().extend))
        await lost(opened.sandbox.put("x", b""))
        await opened.sandbox.close()


async def check_memory_is_bounded(open_sandbox: OpenSandbox) -> None:
    """Of all processes together: several that stay below the bound each."""
    async with open_sandbox(POLICY) as opened:
        if not opened.is_isolated:
            return
        part = POLICY.memory_bytes // 3
        script = (
            f"for n in 1 2 3 4 5; do (head -c {part} /dev/zero | tail) & done; wait; sleep 5; echo survived"
        )
        said = await run_inside(opened.sandbox, script)
        assert (said.exit.ended, said.exit.code) == ("memory", None)
        assert b"survived" not in said.output
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"


async def check_disk_is_bounded(open_sandbox: OpenSandbox) -> None:
    """Of all files together, in /workspace and in /tmp; what is there can still be removed."""
    async with open_sandbox(POLICY) as opened:
        if not opened.is_isolated:
            return
        part = POLICY.disk_bytes // 5
        script = f"n=0; while :; do n=$((n + 1)); head -c {part} /dev/zero >WHERE/part$n || exit 9; sleep 0.05; done"
        for place in ("/workspace", "/tmp"):
            said = await run_inside(opened.sandbox, script.replace("WHERE", place))
            assert (said.exit.ended, said.exit.code) == ("disk", None), said
            held = sum(path.stat().st_blocks * 512 for path in opened.workspace.rglob("part*"))
            assert held < 4 * POLICY.disk_bytes
            said = await run_inside(opened.sandbox, f"rm {place}/part*; echo removed")
            assert said.output == b"removed\n"


async def check_processes_are_bounded(open_sandbox: OpenSandbox) -> None:
    async with open_sandbox(POLICY) as opened:
        if not opened.is_isolated:
            return
        count = POLICY.processes * 4
        script = f"n=0; while [ $n -lt {count} ]; do n=$((n + 1)); sleep 600 & done; echo all {count}"
        said = await run_inside(opened.sandbox, f"({script}) 2>/dev/null; exit 0", timeout_s=20.0)
        assert f"all {count}".encode() not in said.output
        assert said.exit.left_behind <= POLICY.processes
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"


SHARING_CHECKS: tuple[SandboxCheck, ...] = (
    check_exit_codes_are_those_of_a_shell,
    check_output_comes_while_the_command_runs,
    check_input_reaches_the_command,
    check_there_is_no_terminal,
    check_any_bytes_come_out,
    check_a_command_ends_at_its_time,
    check_nothing_outlives_a_command,
    check_cancelling_ends_everything,
    check_commands_wait_for_each_other,
    check_much_output_is_bounded,
    check_the_environment_is_the_policys,
    check_what_cannot_start_is_refused,
    check_words_of_a_command_are_kept_apart,
    *FILE_CHECKS,
)
ENDING_CHECKS: tuple[SandboxCheck, ...] = (
    check_closing_ends_it,
    check_closing_ends_a_running_command,
    check_loss_is_told,
    check_memory_is_bounded,
    check_disk_is_bounded,
    check_processes_are_bounded,
)
SANDBOX_CHECKS: tuple[SandboxCheck, ...] = (*SHARING_CHECKS, *ENDING_CHECKS)


def check_name(check: SandboxCheck) -> str:
    """For test ids."""
    return getattr(check, "__name__", str(check)).removeprefix("check_")
