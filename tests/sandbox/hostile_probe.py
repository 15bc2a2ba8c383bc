"""What a hostile command tries, from inside: `python3 hostile_probe.py WORD CASE`.

Standard library only, and a file of its own, since it runs where nothing of xclaw is. It says the word
backwards, which nobody could who did not run, then ESCAPED with what it got, or BLOCKED with why not. Anything
else, a crash of the probe, too, counts as no answer. On standard input is JSON: where the host's things are.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
IS_X86 = platform.machine() == "x86_64"
CALLS = {
    "unshare": (272, 97), "clone": (56, 220), "clone3": (435, 435), "close_range": (436, 436), "mount": (165, 40), "umount2": (166, 39),
    "chroot": (161, 51), "pivot_root": (155, 41), "setns": (308, 268), "ptrace": (101, 117), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "open_tree": (428, 428), "fsopen": (430, 430),
    "move_mount": (429, 429), "process_vm_readv": (310, 270), "kcmp": (312, 272), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262), "swapon": (167, 224), "reboot": (169, 142), "clock_settime": (227, 112),
    "sethostname": (170, 161), "acct": (163, 89), "syslog": (103, 116), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "quotactl": (179, 60), "fchmodat": (268, 53),
    "fchmod": (91, 52), "openat": (257, 56), "openat2": (437, 437), "mknodat": (259, 33), "setxattr": (188, 5),
    "prlimit64": (302, 261), "ioprio_set": (251, 30), "memfd_secret": (447, 447), "fchmodat2": (452, 452),
    "adjtimex": (159, 171), "statmount": (457, 457), "listmount": (458, 458), "mount_setattr": (442, 442),
    "file_setattr": (469, 469), "getpid": (39, 172), "move_pages": (279, 239),
}  # fmt: skip
NEW_USER, NEW_NET, NEW_MOUNTS = 0x10000000, 0x40000000, 0x20000

Case = Callable[[dict[str, str]], "str | None"]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def call(name: str, *arguments: object) -> int:
    """A raw system call. Raises `OSError`."""
    number = CALLS[name][0 if IS_X86 else 1]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


def holds(facts: dict[str, str], *paths: str) -> str | None:
    """Which of some files has the host's secret in it."""
    errors: list[OSError] = []
    for path in paths:
        try:
            if facts["secret"].encode() in Path(path).read_bytes():
                return f"read {path}"
        except OSError as error:
            errors.append(error)
    if errors and len(errors) == len(paths):
        raise errors[0]
    return None


def other_processes() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield entry.name


# Files of the host.


@case
def read_secret(facts: dict[str, str]) -> str | None:
    return holds(facts, facts["secret_file"])


@case
def read_other_worker(facts: dict[str, str]) -> str | None:
    return holds(facts, facts["other_file"])


@case
def read_by_dots(facts: dict[str, str]) -> str | None:
    return holds(facts, f"../{Path(facts['secret_file']).name}", f"/workspace/..{facts['secret_file']}")


@case
def read_by_link(facts: dict[str, str]) -> str | None:
    Path("link-read").symlink_to(facts["secret_file"])
    return holds(facts, "link-read")


@case
def write_by_link(facts: dict[str, str]) -> str | None:
    Path("link-write").symlink_to(facts["target_file"])
    Path("link-write").write_text("mine")
    return "wrote through a link"


@case
def write_outside(facts: dict[str, str]) -> str | None:
    for path in (facts["target_file"], "/usr/mine", "/etc/mine", "/etc/passwd", "/bin/mine", "/mine", "/dev/mine",
                 "/var/mine", "/run/mine", "/sys/mine", "/input/mine", "/project/mine"):  # fmt: skip
        with contextlib.suppress(OSError), Path(path).open("a"):
            return f"wrote {path}"
    return None


@case
def hard_link(facts: dict[str, str]) -> str | None:
    os.link(facts["secret_file"], "hard")
    return holds(facts, "hard")


@case
def hard_link_to_input(_facts: dict[str, str]) -> str | None:
    os.link("/input/given", "hard-input")
    Path("hard-input").write_text("mine")
    return "changed a file of /input by another name"


@case
def change_input(_facts: dict[str, str]) -> str | None:
    for change in (
        lambda: Path("/input/given").write_text("mine"),
        lambda: Path("/input/given").unlink(),
        lambda: Path("/input/given").chmod(0o777),
        lambda: Path("/input/given").rename("/input/moved"),
        lambda: os.utime("/input/given", (0, 0)),
        lambda: os.truncate("/input/given", 0),
        lambda: os.setxattr("/input/given", "user.x", b"y"),
    ):
        with contextlib.suppress(OSError):
            change()
            return "changed /input"
    return None


@case
def change_mount(_facts: dict[str, str]) -> str | None:
    Path("/project/given").write_text("mine")
    return "changed a read-only mount"


@case
def list_homes(_facts: dict[str, str]) -> str | None:
    found = [path for path in ("/root", "/home", "/var/lib", "/srv", "/opt", "/mnt", "/media", "/boot", "/run",
                               "/var/log", "/var/spool") if Path(path).exists()]  # fmt: skip
    return f"there are {found}" if found else None


@case
def host_settings(_facts: dict[str, str]) -> str | None:
    found = [path for path in ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers",
                               "/etc/machine-id", "/etc/hostname", "/etc/fstab", "/etc/resolv.conf", "/etc/environment",
                               "/etc/krb5.keytab", "/etc/netrc", "/etc/cron.d", "/etc/systemd") if Path(path).exists()]  # fmt: skip
    return f"there are {found}" if found else None


@case
def host_users(_facts: dict[str, str]) -> str | None:
    names = [line.split(":")[0] for line in Path("/etc/passwd").read_text().splitlines()]
    return f"users {names}" if set(names) - {"sandbox", "nobody"} else None


@case
def roots_of_processes(facts: dict[str, str]) -> str | None:
    paths = [
        f"/proc/{pid}/{way}{facts['secret_file']}"
        for pid in (*other_processes(), "self")
        for way in ("root", "cwd")
    ]
    return holds(facts, *paths)


@case
def environments_of_processes(facts: dict[str, str]) -> str | None:
    paths = [f"/proc/{pid}/environ" for pid in (*other_processes(), "self", "1")]
    return holds(facts, *paths)


@case
def own_environment(facts: dict[str, str]) -> str | None:
    return "the key is in the environment" if facts["secret"] in str(dict(os.environ)) else None


@case
def command_lines(facts: dict[str, str]) -> str | None:
    return holds(facts, *[f"/proc/{pid}/cmdline" for pid in other_processes()])


@case
def descriptors(facts: dict[str, str]) -> str | None:
    for pid in ("self", "1", *other_processes()):
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = str(entry.readlink())
                    if facts["secret_file"] in target or "socket:" in target or "bpf" in target:
                        return f"{entry} is {target}"
                    if entry.is_file() and facts["secret"].encode() in entry.read_bytes():
                        return f"{entry} has the secret"
    return None


@case
def directory_descriptors(_facts: dict[str, str]) -> str | None:
    """An inherited directory would be a way out by `..`."""
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            os.stat("..", dir_fd=number)
            return f"descriptor {number} is a directory"
    return None


@case
def file_handles(facts: dict[str, str]) -> str | None:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", -100, b"/workspace", handle, ctypes.byref(mount), 0)
    call("open_by_handle_at", os.open("/workspace", os.O_RDONLY), handle, os.O_RDONLY)
    return f"opened a file by its handle, {facts['case']}"


@case
def kernel_of_the_host(_facts: dict[str, str]) -> str | None:
    for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/port", "/sys/kernel/debug/gpio",
                 "/sys/firmware/efi", "/proc/kpagecount", "/proc/vmallocinfo"):  # fmt: skip
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            file.read(16)
            return f"read {path}"
    return None


@case
def control_groups(_facts: dict[str, str]) -> str | None:
    root = Path("/sys/fs/cgroup")
    return f"there is {root}" if root.exists() and any(root.iterdir()) else None


@case
def files_of_the_keeper(_facts: dict[str, str]) -> str | None:
    """Whatever the table of mounts betrays of the host's directories is not there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        root = line.split()[3]
        for path in (root, str(Path(root).parent)):
            if path.startswith(("/var/tmp/", "/root", "/home", "/tmp/xclaw")) and Path(path).exists():
                return f"there is {path}"
    return None


# Rights.


@case
def become_root(_facts: dict[str, str]) -> str | None:
    for change in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0),
                   lambda: os.setgroups([0]), lambda: os.setuid(1001)):  # fmt: skip
        with contextlib.suppress(OSError):
            change()
            return f"now {os.getresuid()} {os.getresgid()}"
    return None


@case
def be_root(_facts: dict[str, str]) -> str | None:
    status = Path("/proc/self/status").read_text()
    powers = [
        line for line in status.splitlines() if line.startswith("Cap") and set(line.split()[1]) != {"0"}
    ]
    if os.getuid() == 0 or powers:
        return f"uid {os.getuid()}, {powers}"
    return None if "NoNewPrivs:\t1" in status else "new privileges can be had"


@case
def programs_of_root(_facts: dict[str, str]) -> str | None:
    for program in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["newgrp"], ["pkexec", "id", "-u"]):
        with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
            done = subprocess.run(
                program, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
            )
            if done.stdout.strip() == b"0":
                return f"{program[0]} made root"
    return None


@case
def set_user_id_files(_facts: dict[str, str]) -> str | None:
    """By every call that gives a mode."""
    Path("suid").write_text("#!/bin/sh\n")
    name, descriptor = b"suid", os.open("suid", os.O_RDONLY)
    tries: list[Callable[[], object]] = [
        lambda: Path("suid").chmod(0o4755),
        lambda: Path("suid").chmod(0o2755),
        lambda: os.fchmod(descriptor, 0o6755),
        lambda: call("fchmodat", -100, name, 0o4755),
        lambda: call("fchmodat2", -100, name, 0o4755, 0),
        lambda: os.open("suid-new", os.O_CREAT | os.O_WRONLY, 0o4755),
        lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
        lambda: call(
            "openat2", -100, b"suid-two", struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24
        ),
        lambda: call("mknodat", -100, b"suid-node", 0o104755, 0),
        lambda: LIBC.syscall(85, b"suid-creat", 0o4755) if IS_X86 else None,
        lambda: LIBC.syscall(90, b"suid", 0o4755) if IS_X86 else None,
        lambda: LIBC.syscall(0x40000000 + 90, b"suid", 0o4755) if IS_X86 else None,
        lambda: subprocess.run(["install", "-m", "4755", "/bin/true", "suid-installed"], check=False),
        lambda: subprocess.run(["chmod", "u+s", "suid"], capture_output=True, check=False),
    ]
    for attempt in tries:
        with contextlib.suppress(OSError):
            attempt()
    found = [path.name for path in Path().iterdir() if path.is_file() and path.stat().st_mode & 0o6000]
    return f"made {found}" if found else None


@case
def capability_files(_facts: dict[str, str]) -> str | None:
    Path("capable").write_text("")
    value = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
    os.setxattr("capable", "security.capability", value)
    return "made a file with capabilities"


@case
def device_nodes(_facts: dict[str, str]) -> str | None:
    for name, major, minor in (("disk", 254, 0), ("null", 1, 3), ("mem", 1, 1), ("kvm", 10, 232)):
        with contextlib.suppress(OSError):
            os.mknod(name, 0o060666 if name == "disk" else 0o020666, os.makedev(major, minor))
            return f"made {name}"
    return None


@case
def devices(_facts: dict[str, str]) -> str | None:
    allowed = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "fd", "stdin", "stdout", "stderr", "core",
               "pts", "shm", "console", "mqueue", "log"}  # fmt: skip
    found = sorted(path.name for path in Path("/dev").iterdir() if path.name not in allowed)
    return f"there are {found}" if found else None


# Namespaces and mounts.


@case
def new_user_namespace(_facts: dict[str, str]) -> str | None:
    call("unshare", NEW_USER)
    return "unshare made one"


@case
def new_user_namespace_by_clone(_facts: dict[str, str]) -> str | None:
    pid = call("clone", NEW_USER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return "clone made one"


@case
def new_user_namespace_by_clone3(_facts: dict[str, str]) -> str | None:
    arguments = struct.pack("8Q", NEW_USER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    pid = call("clone3", ctypes.create_string_buffer(arguments, len(arguments)), len(arguments))
    if pid == 0:
        os._exit(0)
    return "clone3 made one"


@case
def other_namespaces(_facts: dict[str, str]) -> str | None:
    for name, flag in (("mounts", NEW_MOUNTS), ("net", NEW_NET), ("uts", 0x4000000), ("ipc", 0x8000000),
                       ("pids", 0x20000000), ("groups", 0x2000000), ("time", 0x80)):  # fmt: skip
        with contextlib.suppress(OSError):
            call("unshare", flag)
            return f"unshare made one for {name}"
    return None


@case
def new_user_namespace_by_program(_facts: dict[str, str]) -> str | None:
    for program in (
        ["unshare", "-Ur", "id", "-u"],
        ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "echo", "0"],
    ):
        with contextlib.suppress(FileNotFoundError):
            done = subprocess.run(program, capture_output=True, check=False)
            if done.stdout.strip() == b"0":
                return f"{program[0]} made one"
    return None


@case
def enter_namespaces(_facts: dict[str, str]) -> str | None:
    for pid in ("1", str(os.getppid()), "self"):
        for kind in ("user", "mnt", "net", "pid", "uts"):
            with contextlib.suppress(OSError):
                call("setns", os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), 0)
                return f"entered {kind} of {pid}"
    return None


@case
def change_root(_facts: dict[str, str]) -> str | None:
    call("chroot", b"/workspace")
    return "changed the root"


@case
def mounting(_facts: dict[str, str]) -> str | None:
    Path("over").mkdir(exist_ok=True)
    tries: list[Callable[[], object]] = [
        lambda: call("mount", b"tmpfs", b"/workspace/over", b"tmpfs", 0, b""),
        lambda: call("mount", b"/usr", b"/workspace/over", b"", 4096, b""),
        lambda: call("mount", b"none", b"/usr", b"", 32 | 4096, b""),  # writable again
        lambda: call("mount", b"none", b"/input", b"", 32 | 4096, b""),
        lambda: call("mount", b"/workspace/over", b"/etc", b"", 4096, b""),
        lambda: call("mount", b"proc", b"/workspace/over", b"proc", 0, b""),
        lambda: call("umount2", b"/input", 2),
        lambda: call("umount2", b"/proc", 2),
        lambda: call("pivot_root", b"/workspace", b"/workspace/over"),
        lambda: call("open_tree", -100, b"/", 1),
        lambda: call("fsopen", b"tmpfs", 0),
        lambda: call("move_mount", -100, b"/workspace", -100, b"/input", 0),
        lambda: call("mount_setattr", -100, b"/usr", 0, struct.pack("4Q", 0, 1, 0, 0), 32),
        lambda: call("listmount", struct.pack("IIQQ", 24, 0, 0xFFFFFFFFFFFFFFFF, 0), bytes(800), 100, 0),
    ]
    for number, attempt in enumerate(tries):
        with contextlib.suppress(OSError):
            attempt()
            return f"number {number} worked"
    return None


# The kernel.


@case
def kernel_settings(_facts: dict[str, str]) -> str | None:
    for path in ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/randomize_va_space",
                 "vm/overcommit_memory", "net/ipv4/ip_forward", "fs/file-max", "user/max_user_namespaces",
                 "kernel/ns_last_pid", "kernel/shmmax"):  # fmt: skip
        with contextlib.suppress(OSError), Path("/proc/sys", path).open("r+"):
            return f"{path} can be written"
    for path in (
        "/proc/sysrq-trigger",
        "/proc/self/setgroups",
        "/proc/self/uid_map",
        "/proc/bus",
        "/proc/irq/default_smp_affinity",
    ):
        with contextlib.suppress(OSError):
            text = "1" if "irq" in path else "deny"
            Path(path).write_text(text)
            return f"{path} can be written"
    return None


@case
def risky_calls(facts: dict[str, str]) -> str | None:
    """What the kernel offers beyond files and processes, each with arguments that it would accept or look at."""
    area = ctypes.create_string_buffer(256)
    handle, pid = os.open(".", os.O_RDONLY), int(facts["victim"])
    tries: dict[str, tuple[object, ...]] = {
        "bpf": (0, area, 72), "io_uring_setup": (4, ctypes.create_string_buffer(120)), "keyctl": (0, -3, 1),
        "add_key": (b"user", b"name", b"value", 5, -3), "request_key": (b"user", b"name", b"", -3),
        "perf_event_open": (ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104)), 0, -1, -1, 0),
        "userfaultfd": (1,), "kcmp": (os.getpid(), os.getpid(), 0, 0, 1), "fanotify_init": (0, 0),
        "swapon": (b"/workspace/x", 0), "syslog": (10, 0, 0), "acct": (0,), "quotactl": (0, 0, 0, 0),
        "sethostname": (b"mine", 4), "clock_settime": (0, area), "init_module": (area, 1, b""),
        "finit_module": (handle, b"", 0), "kexec_load": (0, 0, 0, 0), "reboot": (0, 0, 0, 0),
        "memfd_secret": (0,), "pidfd_getfd": (call("pidfd_open", os.getpid(), 0), 0, 0),
        "process_vm_readv": (os.getppid(), area, 0, area, 0, 0), "statmount": (area, area, 256, 0),
        "adjtimex": (struct.pack("i", 0x10) + bytes(204),), "move_pages": (pid, 0, 0, 0, 0, 0),
    }  # fmt: skip
    found: list[str] = []
    for name, arguments in tries.items():
        try:
            call(name, *arguments)
            found.append(name)
        except OSError as error:
            if error.errno not in (1, 38):  # the kernel itself looked at the arguments
                found.append(f"{name}: {error.strerror}")
    return ", ".join(found) or None


@case
def descriptors_of_a_thread_alone(_facts: dict[str, str]) -> str | None:
    """What only one thread has open, nobody who looks at the process sees."""
    handle = os.open("/dev/null", os.O_RDONLY)
    tries: dict[str, tuple[object, ...]] = {
        "close_range": (handle, handle, 2),
        "clone": (0x10900, 0, 0, 0, 0),
    }
    found: list[str] = []
    for name, arguments in tries.items():
        with contextlib.suppress(OSError):
            call(name, *arguments)
            found.append(name)
    return ", ".join(found) or None


@case
def unknown_calls(_facts: dict[str, str]) -> str | None:
    found: list[int] = []
    for number in range(463, 520):
        LIBC.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0)
        if ctypes.get_errno() != 38:
            found.append(number)
    return f"{found} are there" if found else None


@case
def x32_calls(_facts: dict[str, str]) -> str | None:
    if not IS_X86:
        return None
    return "getpid worked" if LIBC.syscall(ctypes.c_long(0x40000000 + 39)) > 0 else None


@case
def calls_of_32_bits(_facts: dict[str, str]) -> str | None:
    """int 0x80 has another table of numbers, to which no filter by number applies."""
    if not IS_X86:
        return None
    code = bytes.fromhex("53 b8 14 00 00 00 cd 80 5b c3")  # getpid of 32 bits
    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(area)))
    pid = os.fork()
    if pid == 0:
        os._exit(0 if function() > 0 else 1)
    _, status = os.waitpid(pid, 0)
    return "getpid worked" if os.waitstatus_to_exitcode(status) == 0 else None


@case
def tracing(facts: dict[str, str]) -> str | None:
    for request, pid in (
        (0, 0),
        (16, os.getppid()),
        (0x4206, os.getppid()),
        (16, int(facts["victim"])),
        (16, 1),
    ):
        with contextlib.suppress(OSError):
            call("ptrace", request, pid, 0, 0)
            return f"request {request} of {pid}"
    return None


@case
def memory_of_processes(facts: dict[str, str]) -> str | None:
    pid = facts["victim"]
    with Path(f"/proc/{pid}/maps").open() as file:
        return (
            f"read its map: {file.readline()}"
            if facts["victim_name"] in Path(f"/proc/{pid}/cmdline").read_text()
            else None
        )


@case
def typing_into_terminals(_facts: dict[str, str]) -> str | None:
    main, side = os.openpty()
    for descriptor in (0, 1, 2, main, side):
        for request, argument in ((0x5412, b"x"), (0x541C, b"\x03")):
            with contextlib.suppress(OSError):
                fcntl.ioctl(descriptor, request, argument)
                return f"request {request:x} worked"
    wide = LIBC.ioctl(ctypes.c_int(side), ctypes.c_ulong(0x1_0000_5412), b"x")
    return "a wide request worked" if wide == 0 else None


@case
def controlling_terminal(_facts: dict[str, str]) -> str | None:
    os.close(os.open("/dev/tty", os.O_RDWR))
    return "there is one"


@case
def priorities(facts: dict[str, str]) -> str | None:
    tries: list[Callable[[], object]] = [
        lambda: os.nice(-5),
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        lambda: call("ioprio_set", 1, 0, (1 << 13) | 4),
        lambda: os.setpriority(os.PRIO_PROCESS, int(facts["victim"]), 10),
        lambda: call("prlimit64", int(facts["victim"]), 7, struct.pack("QQ", 8, 8), 0),
    ]
    for number, attempt in enumerate(tries):
        with contextlib.suppress(OSError):
            attempt()
            return f"number {number} worked"
    return None


@case
def what_users_have_together(_facts: dict[str, str]) -> str | None:
    """Numbers that one user, or all, have of something: used up here, somebody outside would lack it."""
    watches = [number for number in (LIBC.inotify_init1(0) for _ in range(200)) if number >= 0]
    if len(watches) > 64:
        return f"{len(watches)} instances of inotify"
    context = ctypes.c_ulong()
    if LIBC.syscall(ctypes.c_long(206 if IS_X86 else 0), 128, ctypes.byref(context)) == 0:
        return "asynchronous input and output of the kernel"
    if LIBC.mq_open(b"/mine", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
        return "a message queue"
    bounds = {
        name: resource.getrlimit(getattr(resource, name))[1] for name in ("RLIMIT_CORE", "RLIMIT_SIGPENDING")
    }
    return None if bounds["RLIMIT_CORE"] <= 1 and bounds["RLIMIT_SIGPENDING"] <= 1024 else f"bounds {bounds}"


# Processes.


@case
def signals(facts: dict[str, str]) -> str | None:
    os.kill(int(facts["victim"]), signal.SIGUSR1)
    return "a process of the host got it"


@case
def see_processes(facts: dict[str, str]) -> str | None:
    return holds({"secret": facts["victim_name"]}, *[f"/proc/{pid}/cmdline" for pid in other_processes()])


@case
def end_the_first_process(_facts: dict[str, str]) -> str | None:
    """It says what became of the command: to be there at the end is the proof."""
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP):
        with contextlib.suppress(OSError):
            os.kill(1, number)
    time.sleep(0.05)
    state = [line for line in Path("/proc/1/status").read_text().splitlines() if line.startswith("State:")]
    return None if state[0].split()[1] in "SR" else f"it is {state}"


# Sockets.


def heard(facts: dict[str, str], channel: socket.socket, place: object) -> str | None:
    with channel:
        channel.settimeout(3)
        channel.connect(place)  # type: ignore[arg-type] - an address of any family
        return f"reached {place!r}"


@case
def host_by_loopback(facts: dict[str, str]) -> str | None:
    return heard(facts, socket.socket(), ("127.0.0.1", int(facts["port"])))


@case
def host_by_its_addresses(facts: dict[str, str]) -> str | None:
    for address in (
        *filter(None, facts["addresses"].split(",")),
        "0.0.0.0",
        "localhost",
        "host.containers.internal",
    ):
        with contextlib.suppress(OSError):
            return heard(facts, socket.socket(), (address, int(facts["port"])))
    return None


@case
def abstract_socket(facts: dict[str, str]) -> str | None:
    return heard(facts, socket.socket(socket.AF_UNIX), facts["abstract"].replace("@", "\0"))


@case
def socket_by_path(facts: dict[str, str]) -> str | None:
    for path in (facts["socket"], "/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private", "/run/dbus/system_bus_socket",
                 "/tmp/.X11-unix/X0", "/run/user/1000/bus", "/dev/log"):  # fmt: skip
        with contextlib.suppress(OSError):
            return heard(facts, socket.socket(socket.AF_UNIX), path)
    return None


@case
def outside_world(_facts: dict[str, str]) -> str | None:
    """A route is enough: nothing is sent."""
    for family, place in (
        (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET, ("10.0.0.1", 80)),
        (socket.AF_INET6, ("2606:4700:4700::1111", 53)), (socket.AF_INET, ("224.0.0.1", 5353)),
        (socket.AF_INET, ("255.255.255.255", 67)),
    ):  # fmt: skip
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            channel.connect(place)
            return f"there is a route to {place}"
    return None


@case
def interfaces(_facts: dict[str, str]) -> str | None:
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"there are {found}" if found else None


@case
def names_are_looked_up(_facts: dict[str, str]) -> str | None:
    with contextlib.suppress(socket.gaierror):
        return str(socket.getaddrinfo("example.com", 80))
    return None


@case
def other_families(_facts: dict[str, str]) -> str | None:
    """Virtual machines, cards, ciphers, the kernel's own messages: none of them ends at a network namespace."""
    raw, stream, seq, dgram = socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM
    tries = {
        "packet": (17, raw, 3), "vsock": (40, stream, 0), "alg": (38, seq, 0), "bluetooth": (31, raw, 1), "can": (29, raw, 1),
        "rds": (21, seq, 0), "tipc": (30, dgram, 0), "xdp": (44, raw, 0), "key": (15, raw, 2), "qrtr": (42, dgram, 0),
        "uevent": (16, raw, 15), "netfilter": (16, raw, 12), "audit": (16, raw, 9), "generic": (16, raw, 16),
        "raw ip": (2, raw, 1), "raw ip6": (10, raw, 58), "smc": (43, stream, 0),
        "sctp": (2, stream, 132), "dccp": (2, 6, 33), "udp-lite": (2, dgram, 136), "l2tp": (10, dgram, 115),
    }  # fmt: skip
    found: list[str] = []
    for name, (family, kind, protocol) in tries.items():
        with contextlib.suppress(OSError):
            socket.socket(family, kind, protocol).close()
            found.append(name)
        try:
            socket.socketpair(family, kind, protocol)
            found.append(f"a pair of {name}")
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
                found.append(f"a pair of {name}: {error.strerror}")  # somebody had a look at it
    return ", ".join(found) or None


@case
def shared_memory(facts: dict[str, str]) -> str | None:
    """Of System V, and by name."""
    found = LIBC.shmget(ctypes.c_int(int(facts["shared_key"])), ctypes.c_size_t(0), ctypes.c_int(0))
    if found >= 0:
        return "the host's segment is there"
    return holds(facts, f"/dev/shm/{facts['shared_name']}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    word, name, facts = sys.argv[1], sys.argv[2], json.load(sys.stdin)
    say(f"\n{word[::-1]}")
    facts["case"] = name
    try:
        escaped = CASES[name](facts)
    except OSError as error:
        say(f"BLOCKED {error!r}")
        return
    say(f"ESCAPED {escaped}" if escaped else "BLOCKED nothing was found")


if __name__ == "__main__":
    main()
