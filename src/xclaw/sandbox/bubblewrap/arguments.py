"""What bubblewrap is told (standard library only): the file system that a command sees, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Version = tuple[int, ...]
"""Of bubblewrap."""
OLDEST: Version = (0, 5)
"""Older ones cannot clear the environment."""
BOUNDS_SIZES: Version = (0, 7)
"""Older ones could not bound shared memory: then there is none inside."""
KEEPS_USERS: Version = (0, 8)
"""Older ones cannot forbid further user namespaces themselves, which the filter of system calls does."""
INSIDE_UID = 1000
INSIDE_NAME = "sandbox"
SHARED_MEMORY_BYTES = 67_108_864

_FROM_HOST = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_COPIED = (
    "ld.so.cache", "localtime", "magic", "mime.types", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "ssl/cert.pem",
    "ssl/openssl.cnf",
)  # fmt: skip
_SHOWN = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "pki/ca-trust", "pki/tls/certs", "ssl/certs",
)  # fmt: skip
"""Of the host's /etc, where they are: files and directories. No names of users or hosts, no keys."""
_OWN_SETTINGS = {
    "passwd": f"{INSIDE_NAME}:x:{INSIDE_UID}:{INSIDE_UID}::/workspace:/bin/sh\n"
    "nobody:x:65534:65534::/nonexistent:/bin/false\n",
    "group": f"{INSIDE_NAME}:x:{INSIDE_UID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True)
class Places:
    """Directories of the host, as the keeper sees them."""

    workspace: str
    input: str
    temporary: str
    settings: str
    """What `write_settings` has filled."""
    mounts: tuple[tuple[str, str], ...]
    """Sources, and where they are inside."""


def write_settings(directory: Path, host: Path = Path("/etc")) -> None:
    """Fill what is /etc inside: the sandbox's own files, copies, and where directories are bound to."""
    directory.mkdir()
    directory.chmod(0o755)
    for name, text in _OWN_SETTINGS.items():
        _write(directory / name, text.encode())
    for name in _SHOWN:
        if (host / name).is_dir():
            _make(directory, name)
    for name in _COPIED:
        if (host / name).is_file():
            _make(directory, str(Path(name).parent))
            _write(directory / name, (host / name).read_bytes())


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o644)


def _make(directory: Path, name: str) -> None:
    """Directories that anybody may enter, whatever the umask."""
    for part in Path(name).parts:
        directory /= part
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)


def arguments(
    places: Places, environment: Sequence[tuple[str, str]], version: Version, *, shares_network: bool
) -> list[str]:
    """Everything in front of the command, but for descriptors."""
    words = [
        "--unshare-all", "--unshare-user", "--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID),
        "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv",
    ]  # fmt: skip
    if version >= KEEPS_USERS:
        words.append("--disable-userns")
    if shares_network:
        words.append("--share-net")
    for name, value in environment:
        words += ["--setenv", name, value]
    words += [*_programs(), "--ro-bind", places.settings, "/etc"]
    for name in _SHOWN:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    if version >= BOUNDS_SIZES:
        words += ["--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    words += ["--remount-ro", "/dev", "--bind", places.temporary, "/tmp", "--dir", "/var"]
    words += ["--symlink", "../tmp", "/var/tmp"]
    words += ["--bind", places.workspace, "/workspace", "--ro-bind", places.input, "/input"]
    for source, target in places.mounts:
        words += ["--ro-bind", source, target]
    return [*words, "--remount-ro", "/", "--chdir", "/workspace"]


def _programs() -> Iterator[str]:
    for path in _FROM_HOST:
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).is_dir():
            yield from ("--ro-bind", path, path)
