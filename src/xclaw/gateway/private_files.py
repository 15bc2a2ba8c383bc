"""Files that only their user can read: read with care, replaced in one step."""

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from xclaw.contracts.errors import UsageError

MAX_BYTES = 1_000_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

Signature = tuple[int, int, int, int]
"""Changes when a file is replaced, written to, or opened to others."""


def signature_of(path: Path) -> Signature | None:
    """None: there is no such file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(path, error) from None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def read_private(path: Path) -> bytes | None:
    """The contents; None when there is no such file.

    Raises:
        UsageError: it cannot be read, is no plain file, is another user's, too long, or open to others.
    """
    try:
        # A FIFO in its place must not hold the reader up.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(path, error) from None
    try:
        _check(path, os.fstat(descriptor))
        # Of one that grows meanwhile, the beginning; what it holds is checked by whoever reads it.
        return os.read(descriptor, MAX_BYTES)
    except OSError as error:
        raise unusable(path, error) from None
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path}: not a plain file. Remove it and try again.")
    if found.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{path}: belongs to another user. Remove it and try again.")
    if found.st_mode & _OTHERS:
        raise UsageError(
            f"{path}: other users of this machine can open it, so what is in it is no secret any more. "
            f"Replace its tokens, or if nobody can have read it: chmod 600 {path}"
        )
    if found.st_size > MAX_BYTES:
        raise UsageError(f"{path}: larger than {MAX_BYTES:,} bytes; that is not a file of ours.")


def create_private(path: Path, content: bytes) -> bool:
    """Make the file, unless there is one already: false then, and nothing is touched.

    Raises:
        UsageError: it cannot be written.
    """
    with _written(path, content) as temporary:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        _sync_directory(path.parent)
        return True


def replace_private(path: Path, content: bytes) -> None:
    """Write the file anew; whoever reads sees the old contents or the new ones, also after a power cut.

    Raises:
        UsageError: it cannot be written.
    """
    with _written(path, content) as temporary:
        temporary.replace(path)
        _sync_directory(path.parent)


def make_home(directory: Path) -> None:
    """Make a directory for such files, closed to others; one that is there stays as it is.

    Raises:
        UsageError: it cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(directory, error) from None


def unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path}: cannot be used: {error.strerror}. Check it and the permissions of its folder."
    )


@contextmanager
def _written(path: Path, content: bytes) -> Generator[Path]:
    """A file with the contents, safely on disk, beside `path`; it is gone when the block ends."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        make_home(path.parent)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        yield temporary
    except OSError as error:
        raise unusable(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
