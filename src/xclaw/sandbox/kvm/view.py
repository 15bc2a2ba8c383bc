"""A keeper's own view of the file system (standard library only): QEMU reaches directories there that only
root could reach, and that are bound into it after QEMU was started."""

import os
import stat
from pathlib import Path

from xclaw.sandbox.linux import calls
from xclaw.sandbox.linux.trees import open_directory

PLACE = "/tmp"
"""Where everything is bound to. It hides the host's."""
IMAGE = f"{PLACE}/image"
WRITABLE = f"{PLACE}/writable"
READABLE = f"{PLACE}/readable"


class View:
    """In the process that makes it, and in what that starts."""

    def __init__(self) -> None:
        """Raises `OSError` where this process may not have a view of its own."""
        calls.own_mounts()
        self._hidden = os.open(PLACE, os.O_PATH | os.O_CLOEXEC)
        calls.mount("tmpfs", PLACE, "tmpfs", calls.NOSUID | calls.NODEV, "size=256k,mode=0755")
        for path in (IMAGE, WRITABLE, READABLE):
            Path(path).mkdir(mode=0o755)

    def bind(self, source: str, target: str) -> int:
        """Make a directory of the host, which is no link, appear in the view; answers its descriptor.

        Raises:
            OSError: there is no such directory.
        """
        inner = source.removeprefix(f"{PLACE}/")
        if inner != source:
            directory = os.open(inner, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._hidden)
        else:
            directory = open_directory(source)
        Path(target).mkdir(mode=0o755, exist_ok=True)
        calls.bind(directory, target)
        return directory

    def lend_device(self, device: str, uid: int) -> None:
        """Let one user, in this view only, use a device that only root or a group may.

        Raises:
            OSError: this process may not.
        """
        place = Path(f"{PLACE}/device")
        place.mkdir(mode=0o755)
        calls.mount("tmpfs", str(place), "tmpfs", calls.NOSUID, "size=4k,mode=0755")
        node = place / Path(device).name
        os.mknod(node, 0o600 | stat.S_IFCHR, Path(device).stat().st_rdev)
        os.chown(node, uid, uid)
        calls.mount(str(node), device, "", calls.BIND)
