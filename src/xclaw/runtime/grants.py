"""What users answered "always" to: a file of theirs, which they may edit.

Entries are only ever added at its end, so that what a person wrote there stays as it is:

    [[allow]]
    user = "owner"
    agent = "coder"
    rule = "shell(git status)"
"""

import fcntl
import json
import logging
import os
import tempfile
import time
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import UsageError
from xclaw.contracts.permissions import parse_rule
from xclaw.contracts.users import OWNER

logger = logging.getLogger(__name__)

HEADER = '# What you answered "always" to, agent by agent. Remove an entry to be asked again.\n'
MAX_BYTES = 1_000_000
PATIENCE_S = 5.0
LOOK_AGAIN_S = 0.005


@dataclass(frozen=True, slots=True)
class Grant:
    user: str
    agent: str
    rule: str


class GrantFile:
    """Owns the file, which need not exist. Methods block briefly on disk; call them in a thread."""

    def __init__(self, path: Path, patience_s: float = PATIENCE_S) -> None:
        """`patience_s`: how long a process that is writing, or was stopped meanwhile, is waited for."""
        self.path = path
        self._patience_s = patience_s
        self._read: tuple[tuple[int, int], tuple[Grant, ...]] | None = None

    def rules(self, user: str, agent: str) -> tuple[str, ...]:
        """What `user` lets `agent` do. A file that cannot be read grants nothing, and is complained of."""
        try:
            grants = self._grants()
        except UsageError as failure:
            logger.warning("%s; what it grants is asked again", failure)
            return ()
        return tuple(grant.rule for grant in grants if (grant.user, grant.agent) == (user, agent))

    def add(self, grant: Grant) -> None:
        """Add it, unless it is there. Atomic, also between processes.

        Raises `UsageError` for a file that is no TOML, and `OSError`.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            if grant in self._grants():
                return
            self._replace(_with_entry(self._text() or HEADER, grant, self.path))

    def _grants(self) -> tuple[Grant, ...]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return ()
        except OSError as failure:
            raise UsageError(f"{self.path} cannot be read: {failure.strerror}") from None
        version = (status.st_mtime_ns, status.st_size)
        if self._read is None or self._read[0] != version:
            self._read = (version, self._parsed())
        return self._read[1]

    def _parsed(self) -> tuple[Grant, ...]:
        try:
            document = cast("dict[str, object]", tomllib.loads(self._text()))
        except (ValueError, RecursionError) as failure:
            raise UsageError(f"{self.path} is not valid TOML: {failure}. Correct it.") from None
        entries = document.get("allow", [])
        if not isinstance(entries, list):
            raise UsageError(f"{self.path}: `allow` must be a list of tables, written [[allow]]")
        return tuple(self._grant(entry) for entry in cast("list[object]", entries))

    def _grant(self, entry: object) -> Grant:
        fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        user, agent, rule = fields.get("user", OWNER), fields.get("agent"), fields.get("rule")
        if not isinstance(user, str) or not isinstance(agent, str) or not isinstance(rule, str):
            raise UsageError(f"{self.path}: each [[allow]] needs an `agent` and a `rule`, both texts")
        try:
            parse_rule(rule)
        except ValueError as failure:
            raise UsageError(f"{self.path}: {failure}") from None
        return Grant(user, agent, rule)

    def _text(self) -> str:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return ""
        except OSError as failure:
            raise UsageError(f"{self.path} cannot be read: {failure.strerror}") from None
        if len(raw) > MAX_BYTES:
            raise UsageError(f"{self.path} is larger than {MAX_BYTES:,} bytes: remove what is not needed")
        return raw.decode("utf-8-sig")

    def _replace(self, whole: str) -> None:
        target = self.path.resolve()
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(whole)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _wait_for(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise UsageError(
                        f"{self.path} has been locked by another process for {self._patience_s:g} s"
                    ) from None
                time.sleep(LOOK_AGAIN_S)
            else:
                return

    @contextmanager
    def _locked(self) -> Generator[None]:
        """The kernel frees the lock of a process that dies."""
        descriptor = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(descriptor)
            yield
        finally:
            os.close(descriptor)


def _with_entry(text: str, grant: Grant, path: Path) -> str:
    """Raises `UsageError` where nothing can be added below what a person wrote."""
    entry = "".join(
        f"{name} = {_quoted(value)}\n"
        for name, value in (("user", grant.user), ("agent", grant.agent), ("rule", grant.rule))
    )
    whole = f"{text.rstrip()}\n\n[[allow]]\n{entry}"
    try:
        tomllib.loads(whole)
    except ValueError:
        raise UsageError(
            f"{path} lists `allow` in a way that nothing can be added to: write each as [[allow]]"
        ) from None
    return whole


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes, and that of the one control character that JSON leaves."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
