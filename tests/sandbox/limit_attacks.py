"""Commands that use up what they can: memory, disk, processes, time, output. Each ends, within its bounds."""

import asyncio
import time
from pathlib import Path

from xclaw.contracts.sandbox import SandboxPolicy
from xclaw.testing.sandbox_harness import POLICY, OpenSandbox, Said, SandboxCheck, run_inside

SLACK = 400_000_000
"""Bytes that may be written between two looks at the disk."""
SMALL = SandboxPolicy(disk_bytes=4_000_000)
"""For what is slow to make, and to remove."""


def held(place: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in place.rglob("*"))


async def _python(
    open_sandbox: OpenSandbox, script: str, policy: SandboxPolicy = POLICY, timeout_s: float = 20.0
) -> Said:
    """Run a script of Python, which says `up` first; then a second command, which must find the sandbox well."""
    async with open_sandbox(policy) as opened:
        (opened.workspace / "attack.py").write_text(f"print('up', flush=True)\n{script}")
        said = await run_inside(
            opened.sandbox, "exec /usr/bin/python3 -I attack.py 2>&1", timeout_s=timeout_s
        )
        assert said.output.startswith(b"up\n"), said
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"
        return said


def _is_memory(said: Said) -> None:
    """Killed, or told by the system that there is no more."""
    assert b"got away" not in said.output, said
    refused = (
        b"MemoryError" in said.output or b"No space left" in said.output or b"Cannot allocate" in said.output
    )
    assert said.exit.ended == "memory" or refused, said


async def check_memory_of_one_process(open_sandbox: OpenSandbox) -> None:
    _is_memory(
        await _python(
            open_sandbox, "b = bytearray(); [b.extend(bytes(10**7)) for _ in range(400)]; print('got away')"
        )
    )


async def check_memory_of_anonymous_files(open_sandbox: OpenSandbox) -> None:
    """Memory that is mapped by nobody."""
    script = "import os, time\nfor n in range(80):\n f = os.memfd_create('x'); [os.write(f, bytes(10**6)) for _ in range(10)]\n time.sleep(0.02)\ntime.sleep(3); print('got away')"
    _is_memory(await _python(open_sandbox, script))


async def check_memory_of_shared_memory(open_sandbox: OpenSandbox) -> None:
    script = "for n in range(80):\n with open(f'/dev/shm/{n}', 'wb') as f: f.write(bytes(10**7))\nprint('got away')"
    _is_memory(await _python(open_sandbox, script))


async def check_memory_shared_by_many_counts_once(open_sandbox: OpenSandbox) -> None:
    """Ten processes with the same pages are no attack."""
    script = (
        "import os, time\nb = bytearray(60 * 10**6)\nfor n in range(10):\n if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "for n in range(10): os.wait()\nprint('well')"
    )
    said = await _python(open_sandbox, script)
    assert said.output == b"up\nwell\n", said


async def check_segments_that_belong_to_no_process(open_sandbox: OpenSandbox) -> None:
    """System V's shared memory stays when its maker ends; here it is counted, or there is none."""
    script = (
        "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\nfor n in range(80):\n"
        " i = c.shmget(0, 10**7, 0o1600)\n if i < 0: print('Cannot allocate'); break\n"
        " a = c.shmat(i, None, 0); ctypes.memset(a, 1, 10**7); c.shmdt(ctypes.c_void_p(a))\nelse: print('got away')"
    )
    _is_memory(await _python(open_sandbox, script))


async def _disk(open_sandbox: OpenSandbox, script: str, policy: SandboxPolicy = POLICY) -> Said:
    async with open_sandbox(policy) as opened:
        (opened.workspace / "attack.py").write_text(f"print('up', flush=True)\n{script}\nprint('got away')")
        said = await run_inside(opened.sandbox, "exec /usr/bin/python3 -I attack.py 2>&1", timeout_s=20.0)
        assert said.output.startswith(b"up\n"), said
        assert b"got away" not in said.output, said
        assert held(opened.workspace) < POLICY.disk_bytes + SLACK
        return said


async def check_disk_by_many_files(open_sandbox: OpenSandbox) -> None:
    script = "import os, time\nfor n in range(200):\n with open(f'f{n}', 'wb') as f: f.write(bytes(10**6))\n time.sleep(0.01)"
    assert (await _disk(open_sandbox, script)).exit.ended == "disk"


async def check_disk_by_one_large_file(open_sandbox: OpenSandbox) -> None:
    script = "with open('f', 'wb') as f:\n for n in range(900): f.write(bytes(10**6))"
    said = await _disk(open_sandbox, script)
    assert said.exit.ended == "disk" or said.exit.code == 153 or b"File too large" in said.output, said


async def check_disk_by_empty_files(open_sandbox: OpenSandbox) -> None:
    """What has no content has an entry."""
    script = "import os\nfor n in range(10**6): os.close(os.open(f'{n}', os.O_CREAT | os.O_WRONLY))"
    assert (await _disk(open_sandbox, script, SMALL)).exit.ended == "disk"


async def check_disk_by_links(open_sandbox: OpenSandbox) -> None:
    script = "import os\nfor n in range(10**6): os.symlink('x' * 60, f'{n}')"
    assert (await _disk(open_sandbox, script, SMALL)).exit.ended == "disk"


async def check_disk_by_directories_in_directories(open_sandbox: OpenSandbox) -> None:
    """Deeper than any path is long, than descriptors could be open; the host can still remove them."""
    script = "import os, time\nfor n in range(3000):\n os.mkdir('d'); os.chdir('d')\ntime.sleep(2)"
    async with open_sandbox(SandboxPolicy(disk_bytes=400_000)) as opened:
        for place in ("/workspace", "/tmp"):
            line = f"cd {place}; exec /usr/bin/python3 -I -c \"print('up', flush=True)\n{script}\""
            said = await run_inside(opened.sandbox, line, timeout_s=20.0)
            assert (said.output, said.exit.ended) == (b"up\n", "disk"), said
            await run_inside(opened.sandbox, f"rm -rf {place}/d")
            assert not (opened.workspace / "d").exists()
        assert (await run_inside(opened.sandbox, "ls /workspace")).output == b""


async def check_disk_by_directories_that_move(open_sandbox: OpenSandbox) -> None:
    """Whoever measures them finds another way up than down."""
    script = (
        "import os, time\nos.makedirs('a/b/c/d/e'); os.mkdir('z')\nif os.fork() == 0:\n while True:\n"
        "  os.rename('a/b', 'z/b'); os.rename('z/b', 'a/b')\n"
        "for n in range(200):\n with open(f'f{n}', 'wb') as f: f.write(bytes(10**6))\n time.sleep(0.02)"
    )
    assert (await _disk(open_sandbox, script)).exit.ended == "disk"


async def check_disk_in_closed_directories(open_sandbox: OpenSandbox) -> None:
    """What the owner has closed to itself is measured, or ends the command."""
    script = (
        "import os, time\nos.mkdir('closed'); d = os.open('closed', os.O_RDONLY); os.chmod('closed', 0)\n"
        "for n in range(100):\n"
        " os.chmod('closed', 0o700); f = os.open('x%d' % n, os.O_CREAT | os.O_WRONLY, dir_fd=d); os.chmod('closed', 0)\n"
        " os.write(f, bytes(10**6)); os.close(f); time.sleep(0.02)\n"
    )
    assert (await _disk(open_sandbox, script)).exit.ended == "disk"


async def check_disk_by_files_without_a_name(open_sandbox: OpenSandbox) -> None:
    script = (
        "import os, time\nkept = []\nfor n in range(100):\n f = open(f'f{n}', 'wb'); os.unlink(f'f{n}'); kept.append(f)\n"
        " f.write(bytes(10**6)); f.flush(); time.sleep(0.02)\ntime.sleep(1)"
    )
    assert (await _disk(open_sandbox, script)).exit.ended == "disk"


async def check_holes_take_up_nothing(open_sandbox: OpenSandbox) -> None:
    """What counts is what is allocated, and a single file has a size that it cannot exceed."""
    script = f"f = open('f', 'wb'); f.truncate({POLICY.disk_bytes - 1000}); print('well')"
    assert (await _python(open_sandbox, script)).output == b"up\nwell\n"
    script = f"f = open('f', 'wb'); f.truncate({POLICY.disk_bytes * 2})\nprint('got away')"
    assert b"got away" not in (await _python(open_sandbox, script)).output


async def check_what_grew_is_removed_and_work_goes_on(open_sandbox: OpenSandbox) -> None:
    """Nobody is killed for what an earlier command has left, as long as it does not grow."""
    async with open_sandbox(POLICY) as opened:
        fill = f"head -c {POLICY.disk_bytes * 2 // 3} /dev/zero >"
        said = await run_inside(opened.sandbox, f"{fill}one && {fill}/tmp/two; sleep 5")
        assert said.exit.ended == "disk", said
        said = await run_inside(opened.sandbox, "ls; cat one >/dev/null; sleep 0.3; echo read")
        assert said.output == b"one\nread\n", said
        assert (
            await run_inside(opened.sandbox, "rm one; sleep 0.2; echo small >small; cat small")
        ).output == b"small\n"


async def check_fork_bomb_until_its_time(open_sandbox: OpenSandbox) -> None:
    """All processes at once, none of which listens: gone at the time-out."""
    started = time.monotonic()
    async with open_sandbox(POLICY) as opened:
        said = await run_inside(
            opened.sandbox, "trap '' TERM; f() { f | f & f; }; f 2>/dev/null; sleep 60", timeout_s=1.5
        )
        assert said.exit.ended in ("timeout", "exited", "memory"), said
        assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"
    assert time.monotonic() - started < 30


async def check_fork_bomb_of_python(open_sandbox: OpenSandbox) -> None:
    script = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nn = 0\nwhile n < 500:\n try:\n"
        "  if os.fork() == 0: os.setsid(); time.sleep(100); os._exit(0)\n  n += 1\n except OSError: break\n"
        "print('made', n, flush=True)"
    )
    said = await _python(open_sandbox, script)
    if said.exit.ended != "memory":
        assert said.exit.ended == "exited"
        assert int(said.output.split()[-1]) < POLICY.processes, said
        assert 0 < said.exit.left_behind <= POLICY.processes, said


async def check_descriptors_are_bounded(open_sandbox: OpenSandbox) -> None:
    script = "import os\nn = 0\ntry:\n while True: os.dup(0); n += 1\nexcept OSError: print(n)"
    assert int((await _python(open_sandbox, script)).output.split()[-1]) <= 1024


async def check_output_of_all_streams_at_once(open_sandbox: OpenSandbox) -> None:
    """Until its time; the host keeps what the policy says and its time, too."""
    async with open_sandbox(POLICY) as opened:
        started = time.monotonic()
        said = await run_inside(opened.sandbox, "yes out & yes err >&2 & yes more", timeout_s=1.0)
        assert said.exit.ended == "timeout"
        assert len(said.output) <= POLICY.output_bytes
        assert said.exit.dropped_bytes > POLICY.output_bytes
        assert time.monotonic() - started < 20


async def check_sleeping_past_the_time(open_sandbox: OpenSandbox) -> None:
    """Stopped, deaf, in sessions of their own."""
    script = (
        "import os, signal, time\nfor n in range(1, 65):\n try: signal.signal(n, signal.SIG_IGN)\n except (OSError, ValueError): pass\n"
        "for n in range(5):\n if os.fork() == 0:\n  os.setsid()\n  if n % 2: os.kill(os.getpid(), signal.SIGSTOP)\n  time.sleep(1000)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )
    said = await _python(open_sandbox, script, timeout_s=1.0)
    assert (said.exit.ended, said.exit.code) == ("timeout", None)


async def check_lies_about_the_end(open_sandbox: OpenSandbox) -> None:
    """Whatever a command writes into the first process's descriptors, the host's own findings stand."""
    script = (
        "import os\nfor n in os.listdir('/proc/1/fd'):\n try:\n  f = os.open(f'/proc/1/fd/{n}', os.O_WRONLY | os.O_NONBLOCK)\n"
        "  os.write(f, b'e 99999\\ne -5\\nc never started\\ns\\n\\xff\\x00' * 1000)\n except OSError: pass\nos._exit(6)"
    )
    said = await _python(open_sandbox, script)
    assert (said.exit.ended, said.exit.code) == ("exited", 6), said
    assert 0 <= said.exit.left_behind < 100_000


async def check_processor_time_is_bounded(open_sandbox: OpenSandbox) -> None:
    """Half a processor, or no more than one where nothing better can be done."""
    policy = SandboxPolicy(cpus=0.5)
    script = (
        "import os, time, resource\nend = time.monotonic() + 1.5\nfor n in range(3):\n if os.fork() == 0:\n"
        "  while time.monotonic() < end: pass\n  os._exit(0)\nfor n in range(3): os.wait()\n"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN)\nprint(u.ru_utime + u.ru_stime)"
    )
    async with asyncio.timeout(60):
        said = await _python(open_sandbox, script, policy)
    assert float(said.output.split()[-1]) < 1.5 * 1.3, said


ATTACKS: tuple[SandboxCheck, ...] = tuple(
    attack for name, attack in sorted(globals().items()) if name.startswith("check_")
)
