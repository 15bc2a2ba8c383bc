"""Commands that use up memory and disk in places where nobody counts it, or faster than anybody looks."""

import asyncio
import contextlib

from sandbox.limit_attacks import SLACK, held
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import SandboxCommand
from xclaw.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from xclaw.sandbox.linux.watch import FULL_BYTES
from xclaw.testing.sandbox_harness import POLICY, WAIT_S, OpenSandbox, Said, SandboxCheck, run_inside

_MAPPING = """
import ctypes, mmap, os, socket, threading, time
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
def map_a_page(fd):
    assert c.mmap(None, 4096, 1, 1, fd, 0) not in (None, 2**64 - 1)
    os.close(fd)
def unnamed(n):
    fd = os.open(f'f{n}', os.O_CREAT | os.O_RDWR)
    os.unlink(f'f{n}')
    return fd
def without_first_thread(work):
    def rest():
        time.sleep(0.1)
        work()
        time.sleep(2)
        print('got away', flush=True)
        os._exit(0)
    threading.Thread(target=rest).start()
    c.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
print('up', flush=True)
"""


async def _ended(open_sandbox: OpenSandbox, script: str) -> Said:
    async with open_sandbox(POLICY) as opened:
        (opened.workspace / "attack.py").write_text(_MAPPING + script + "\ntime.sleep(2); print('got away')")
        said = await run_inside(opened.sandbox, "exec /usr/bin/python3 -I attack.py 2>&1", timeout_s=30.0)
        assert said.output.startswith(b"up\n"), said
        assert b"got away" not in said.output, said
        assert held(opened.workspace) < POLICY.disk_bytes + SLACK
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"
        return said


async def _is_memory(open_sandbox: OpenSandbox, script: str) -> None:
    said = await _ended(open_sandbox, script)
    refused = b"MemoryError" in said.output or b"Cannot allocate" in said.output
    assert said.exit.ended == "memory" or refused, said


async def _is_disk(open_sandbox: OpenSandbox, script: str) -> None:
    said = await _ended(open_sandbox, script)
    assert said.exit.ended == "disk", said


async def check_memory_without_a_first_thread(open_sandbox: OpenSandbox) -> None:
    """A process whose first thread has ended seems to have nothing."""
    script = "def work():\n kept = []\n for n in range(60): kept.append(b'x' * 10**7); time.sleep(0.02)\nwithout_first_thread(work)"
    await _is_memory(open_sandbox, script)


async def check_memory_of_files_that_are_mapped_by_a_page(open_sandbox: OpenSandbox) -> None:
    script = (
        "for n in range(60):\n fd = os.memfd_create('x'); os.write(fd, bytes(10**7)); map_a_page(fd); time.sleep(0.02)\n"
        "time.sleep(1)"
    )
    await _is_memory(open_sandbox, script)


async def check_memory_that_is_shared_and_not_mapped_any_more(open_sandbox: OpenSandbox) -> None:
    script = (
        "kept = []\nfor n in range(60):\n m = mmap.mmap(-1, 10**7)\n for at in range(0, 10**7, 4096): m[at] = 1\n"
        " m.madvise(mmap.MADV_DONTNEED); kept.append(m); time.sleep(0.02)"
    )
    await _is_memory(open_sandbox, script)


async def check_disk_without_a_first_thread(open_sandbox: OpenSandbox) -> None:
    script = (
        "def work():\n kept = []\n for n in range(60):\n"
        "  fd = unnamed(n); os.write(fd, bytes(10**7)); kept.append(fd); time.sleep(0.02)\nwithout_first_thread(work)"
    )
    await _is_disk(open_sandbox, script)


async def check_disk_by_files_that_are_only_mapped(open_sandbox: OpenSandbox) -> None:
    """Without a name, and not open."""
    script = (
        "for n in range(60):\n fd = unnamed(n); os.write(fd, bytes(10**7)); map_a_page(fd); time.sleep(0.02)"
    )
    await _is_disk(open_sandbox, script)


async def check_disk_by_files_on_their_way(open_sandbox: OpenSandbox) -> None:
    """Sent to another process, and never received."""
    script = (
        "kept = []\nfor n in range(60):\n if n % 20 == 0: kept.append(socket.socketpair())\n fd = unnamed(n)\n"
        " os.write(fd, bytes(10**7)); socket.send_fds(kept[-1][0], [b'x'], [fd]); os.close(fd); time.sleep(0.02)"
    )
    await _is_disk(open_sandbox, script)


async def check_disk_that_is_reserved(open_sandbox: OpenSandbox) -> None:
    """What takes no time at all, gigabytes between two looks, is not to be had: it is written instead."""
    script = (
        "for n in range(100):\n fd = os.open(f'f{n}', os.O_CREAT | os.O_RDWR)\n"
        f" os.posix_fallocate(fd, 0, {POLICY.disk_bytes - 10**6}); os.close(fd)"
    )
    await _is_disk(open_sandbox, script)


async def check_disk_that_is_reserved_by_another_name(open_sandbox: OpenSandbox) -> None:
    script = (
        "import fcntl, struct\nfor n in range(100):\n fd = os.open(f'f{n}', os.O_CREAT | os.O_RDWR)\n"
        f" for call in (0x40305828, 0x4030582a, 0x40305839):\n  try:\n"
        f"   fcntl.ioctl(fd, call, struct.pack('hxxxxxxqqiI16x', 0, 0, {POLICY.disk_bytes - 10**6}, 0, 0)); print('got away')\n"
        "  except OSError: pass\nprint('nothing reserved', flush=True); os._exit(0)"
    )
    assert b"nothing reserved" in (await _ended(open_sandbox, script)).output


async def check_disk_by_command_after_command(open_sandbox: OpenSandbox) -> None:
    """Each is ended, and the next goes on where it was: at some point there is no next."""
    size = POLICY.disk_bytes - 10**6
    prepare = f"i=0; while [ $i -lt 120 ]; do truncate -s {size} /workspace/f$i; i=$((i + 1)); done"
    grow = (
        "import mmap, sys\nfor n in range(int(sys.argv[1]), 120):\n f = open(f'f{n}', 'r+b')\n"
        f" m = mmap.mmap(f.fileno(), {size})\n for at in range(0, {size}, 4096): m[at] = 1"
    )
    async with open_sandbox(POLICY) as opened:
        (opened.workspace / "grow.py").write_text(grow)
        assert (await run_inside(opened.sandbox, prepare)).exit.code == 0
        with contextlib.suppress(ToolFailed):  # nothing more is run in it
            for turn in range(50):
                argv = ("/usr/bin/python3", "-I", "grow.py", str(turn * 2))
                await opened.sandbox.exec(SandboxCommand(argv, WAIT_S), lambda _piece: None)
        assert held(opened.workspace) < POLICY.disk_bytes + FULL_BYTES + SLACK // 4


async def check_who_has_locked_itself_out_is_let_in_again(open_sandbox: OpenSandbox) -> None:
    """Its own directories, closed by a command: the next one is there as ever, and so are the host's tools."""
    async with open_sandbox(POLICY) as opened:
        said = await run_inside(opened.sandbox, "echo kept >file; chmod 000 /tmp /workspace && echo closed")
        assert said.output == b"closed\n", said
        assert opened.workspace.stat().st_mode & 0o700 == 0o700
        said = await run_inside(opened.sandbox, "pwd; cat file; echo more >/tmp/file && echo well")
        assert said.output == b"/workspace\nkept\nwell\n", said
        assert await opened.sandbox.get("file") == b"kept\n"


async def check_a_closed_tmp_goes_with_its_sandbox(open_sandbox: OpenSandbox) -> None:
    """Also when nobody was left to open it again."""
    async with open_sandbox(POLICY) as opened:
        closed = asyncio.Event()
        command = SandboxCommand(
            ("/bin/sh", "-c", "mkdir /tmp/d && chmod 000 /tmp && echo closed; sleep 99"), 60.0
        )
        running = asyncio.create_task(opened.sandbox.exec(command, lambda _piece: closed.set()))
        async with asyncio.timeout(WAIT_S):
            await closed.wait()
        if opened.kill is not None:
            opened.kill()
            await asyncio.wait([running])
        running.cancel()
        await asyncio.wait([running])
        await opened.sandbox.close()
        if isinstance(opened.sandbox, BubblewrapSandbox):
            assert not opened.sandbox.home.exists()


async def check_what_was_over_and_has_been_removed_is_no_bound(open_sandbox: OpenSandbox) -> None:
    """Removing is quicker than anybody looks; the next command has all its room again."""
    async with open_sandbox(POLICY) as opened:
        fill = f"head -c {POLICY.disk_bytes * 2 // 3} /dev/zero >"
        said = await run_inside(opened.sandbox, f"{fill}one && {fill}two; sleep 5")
        assert said.exit.ended == "disk", said
        assert (await run_inside(opened.sandbox, "rm one two")).exit.code == 0
        said = await run_inside(opened.sandbox, f"{fill}one && echo well")
        assert said.output == b"well\n", said


ATTACKS: tuple[SandboxCheck, ...] = tuple(
    attack for name, attack in sorted(globals().items()) if name.startswith("check_")
)
