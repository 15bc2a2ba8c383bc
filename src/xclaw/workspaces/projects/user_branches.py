"""A branch in the user's repository: a file that appears whole, where nothing of that name was."""

import itertools
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from xclaw.contracts.errors import UsageError
from xclaw.workspaces.projects.checkout import Checkout

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 1_000


def take_branch(checkout: Checkout, branch: str, commit: str, is_ours_before: Callable[[str], bool]) -> str:
    """Have a branch of this name, or the name with a number, be at `commit`; answers the name.

    `is_ours_before` tells of a commit whether `commit` goes on from it: only such a branch is moved, and only
    if no working directory is on it. Raises `UsageError` where the repository cannot be written.
    """
    checked_out = checkout.checked_out()
    for number in itertools.islice(itertools.count(1), _ATTEMPTS):
        name = branch if number == 1 else f"{branch}-{number}"
        ref = f"refs/heads/{name}"
        there = checkout.ref(ref)
        if there == commit:
            return name
        if there and (ref in checked_out or not is_ours_before(there)):
            continue
        try:
            if _write(checkout, ref, there, commit):
                return name
        except OSError as failure:
            raise UsageError(
                f"the branch {name} cannot be written to {checkout.common}: {failure.strerror or failure}"
            ) from failure
    raise UsageError(f"there are too many branches named {branch}-… in {checkout.common}")


def _write(checkout: Checkout, ref: str, expected: str, commit: str) -> bool:
    """As git writes one: a lock file of the branch, which becomes the branch. False where the place is taken."""
    *above, name = ref.split("/")
    if checkout.has_part(ref):
        raise _taken_by_part(ref)
    try:
        with _opened(checkout.common, above) as directory:
            if _is_directory(name, directory) or checkout.has_below(ref):
                return False
            lock = f"{name}.lock"
            descriptor = os.open(lock, _NEW, 0o644, dir_fd=directory)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(f"{commit}\n".encode())
                    file.flush()
                    os.fsync(file.fileno())
                if checkout.ref(ref) != expected:
                    return False
                os.rename(lock, name, src_dir_fd=directory, dst_dir_fd=directory)
                return True
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(lock, dir_fd=directory)
    except NotADirectoryError:
        raise _taken_by_part(ref) from None
    except FileExistsError:
        return False


def _taken_by_part(ref: str) -> UsageError:
    return UsageError(f"the branch {ref[11:]} cannot be made: another branch has the name of a part of it")


@contextmanager
def _opened(top: str, names: list[str]) -> Generator[int]:
    directory = os.open(top, _DIRECTORY)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=directory)
            deeper = os.open(name, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = deeper
        yield directory
    finally:
        os.close(directory)


def _is_directory(name: str, directory: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
