"""Scripts: what a scripted model or a fake provider's rules answer, in YAML or JSON.

    - agent: coder                  # who is answered; left out: anybody
      when: "two jokes|twice"       # regular expression that the request matches; left out: any
      replies:                      # the first answer, the second, ...
        - calls: [{name: deliver, arguments: {path: "{{delivery_dir}}/a.md", content: "# A"}}]
          text: I write it down.    # optional beside calls
        - text: {status: success, summary_data: {}, artifact_pointers: {a: "{{pointer:a.md}}"}}
    - agent: reviewer
      replies:
        - fail: interrupted         # or unavailable, rejected
          after: "partial text that was streamed before"

A `text` that is an object becomes JSON text; `arguments` that are a string are sent as they are, so
that malformed ones can be scripted. For placeholders see `xclaw.testing.placeholders`.
"""

import re
from pathlib import Path
from typing import Literal, cast

import msgspec
import yaml

from xclaw.contracts.errors import UsageError

Failure = Literal["unavailable", "rejected", "interrupted"]
MAX_SCRIPT_BYTES = 10_000_000


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, object] | str = msgspec.field(default_factory=dict[str, object])


class ScriptedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer: text, calls, both, or a failure."""

    text: str | dict[str, object] | None = None
    calls: tuple[ScriptedCall, ...] = ()
    fail: Failure | None = None
    after: str = ""
    """Streamed before the failure."""

    def __post_init__(self) -> None:
        answers = self.text is not None or bool(self.calls)
        if answers == (self.fail is not None):
            raise ValueError("a reply has `text`, `calls` or both, or else `fail`")
        if self.after and self.fail is None:
            raise ValueError("`after` goes with `fail` only")


class ScriptEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to one request of one agent."""

    replies: tuple[ScriptedReply, ...]
    agent: str = ""
    """Empty: any."""
    when: str = ""

    def __post_init__(self) -> None:
        if not self.replies:
            raise ValueError("`replies` is empty")
        try:
            re.compile(self.when)
        except re.error as error:
            raise ValueError(f"`when` is no regular expression: {error}") from None


def load_script(path: Path) -> tuple[ScriptEntry, ...]:
    """Read a script. Raises `UsageError` naming the file, the entry (from 1) and the reason."""
    try:
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            raise UsageError(f"script {path}: larger than {MAX_SCRIPT_BYTES} bytes")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"script {path}: cannot be read: {error}") from None
    try:
        content: object = msgspec.json.decode(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(
            f"script {path}: no valid YAML or JSON: {error}\n"
            "A value that starts with a brace, such as {{delivery_dir}}, needs quotes."
        ) from None
    if not isinstance(content, list):
        raise UsageError(f"script {path}: must be a list of entries, each with `replies`")
    return entries_from(cast("list[object]", content), f"script {path}")


def entries_from(content: list[object], where: str) -> tuple[ScriptEntry, ...]:
    """Check a script's content. Raises `UsageError`; `where` begins its text."""
    entries: list[ScriptEntry] = []
    for number, item in enumerate(content, 1):
        try:
            entries.append(msgspec.convert(item, ScriptEntry))
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}, entry {number}: {error}") from None
    return tuple(entries)
