"""How booting a guest went, kept until the computer starts anew: what takes many seconds to find out, above
all that it does not work, is not found out by every process."""

import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

from xclaw.contracts.sandbox import BackendName, Probe
from xclaw.sandbox.kvm.image import Image

BELIEVED_S = 3_600.0
"""How long it is believed that it does not work: a machine may just have been busy."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Verdicts:
    """Of one backend, with one image and one QEMU, for one user."""

    def __init__(self, image_dir: Path, backend: BackendName, image: Image, program: str) -> None:
        self._path = image_dir / f"probe-{backend}-{os.geteuid()}.json"
        self._backend: BackendName = backend
        self._image = image
        self._program = program

    def known(self) -> Probe | None:
        """None when it is not known."""
        try:
            content: object = json.loads(self._path.read_bytes())
            if not isinstance(content, dict):
                return None
            fields = cast("dict[str, object]", content)
            works, detail, at = fields["works"], fields["detail"], fields["at"]
            if fields["of"] != self._of() or type(works) is not bool or not isinstance(detail, str):
                return None
            if not isinstance(at, float) or (not works and not 0 <= time.time() - at < BELIEVED_S):
                return None
        except (OSError, ValueError, KeyError):
            return None
        return Probe(self._backend, works, detail)

    def remember(self, probe: Probe) -> None:
        """If that is not possible, the next process finds out for itself."""
        with suppress(OSError):
            content = {"of": self._of(), "at": time.time(), "works": probe.works, "detail": probe.detail}
            handle, name = tempfile.mkstemp(prefix=".probe-", dir=self._path.parent)
            with os.fdopen(handle, "w") as file:
                json.dump(content, file)
            Path(name).replace(self._path)

    def _of(self) -> str:
        """What the verdict depends on. Raises `OSError`."""
        program = Path(self._program).stat()
        parts = (
            _BOOT_ID.read_text().strip(),
            self._image.directory.name,
            program.st_mtime_ns,
            program.st_ino,
        )
        return " ".join(map(str, parts))
