"""Reading a `<task-notification>` that came from outside, in the forms that other tools write it."""

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from xclaw.contracts.errors import UsageError
from xclaw.contracts.notifications import TASK_NOTIFICATION, Notification, NotifiedStatus, NotifiedUsage

MAX_CHARACTERS = 200_000
ID_CHARACTERS = 200
TEXT_CHARACTERS = 20_000
MAX_ARTIFACTS = 200
MAX_EXTRA = 50

_FIELDS = {
    "taskid": "task_id",
    "id": "task_id",
    "agentid": "agent_id",
    "agentname": "agent_name",
    "agent": "agent_name",
    "name": "agent_name",
    "status": "status",
    "state": "status",
    "outcome": "outcome",
    "summary": "summary",
    "details": "details",
    "detail": "details",
    "result": "details",
    "output": "details",
    "artifacts": "artifacts",
    "artifact": "artifacts",
    "pointers": "artifacts",
    "resultpointer": "artifacts",
    "artifactpointers": "artifacts",
    "outputfile": "artifacts",
    "reason": "reason",
    "error": "reason",
    "usage": "usage",
}
"""Names as they are written elsewhere, folded, to ours."""
_STATUSES: dict[str, NotifiedStatus] = {
    **dict.fromkeys(("success", "succeeded", "successful", "complete", "completed", "done", "ok"), "success"),
    **dict.fromkeys(
        (
            "error",
            "failed",
            "failure",
            "fail",
            "errored",
            "cancelled",
            "canceled",
            "killed",
            "stopped",
            "timeout",
        ),
        "error",
    ),
    **dict.fromkeys(("running", "started", "pending", "queued", "inprogress", "progress"), "running"),
}
_ONE_LINE = frozenset({"task_id", "agent_id", "agent_name", "outcome"})


def parse(text: str) -> Notification:
    """What it says. Raises `UsageError` for what is no single, well-formed notification of a task.

    Names of elements are taken in any case, with dashes, underscores or neither, in any namespace, and as
    attributes too; what is not known is kept in `extra`. Entities and document types are refused.
    """
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"a task notification has at most {MAX_CHARACTERS:,} characters, not {len(text):,}")
    try:
        root: Element = fromstring(text.strip(), forbid_dtd=True)
    except DefusedXmlException as refusal:
        raise UsageError(f"task notification: entities and document types are refused ({refusal})") from None
    except (ParseError, ValueError, RecursionError) as failure:
        raise UsageError(f"task notification: not well-formed XML: {failure}") from None
    if _folded(root.tag) != _folded(TASK_NOTIFICATION):
        raise UsageError(f"task notification: expected <{TASK_NOTIFICATION}>, not <{_local(root.tag)[:40]}>")
    return _read(root)


def _read(root: Element) -> Notification:
    texts: dict[str, str] = {}
    artifacts: list[str] = []
    usage = NotifiedUsage()
    extra: list[tuple[str, str]] = []
    for name, value, element in _parts(root):
        field = _FIELDS.get(_folded(name))
        if field == "usage" and element is not None:
            usage = _usage(element)
        elif field == "artifacts":
            artifacts += _paths(value, element)
        elif field is None or field in texts:
            extra.append((name[:ID_CHARACTERS], value[:TEXT_CHARACTERS]))
        else:
            texts[field] = value[:TEXT_CHARACTERS]
    for field in _ONE_LINE & texts.keys():
        texts[field] = texts[field].strip()[:ID_CHARACTERS]
    if not texts.get("task_id"):
        raise UsageError("task notification: <task-id> is missing")
    word = texts.pop("status", "").strip()
    status = _STATUSES.get(_folded(word), "unknown")
    if status == "unknown" or (status == "error" and word not in ("error", "failed")):
        texts.setdefault("outcome", word[:ID_CHARACTERS])
    return Notification(
        status=status,
        artifacts=tuple(artifacts[:MAX_ARTIFACTS]),
        usage=usage,
        extra=tuple(extra[:MAX_EXTRA]),
        **texts,
    )


def _parts(root: Element) -> Iterator[tuple[str, str, Element | None]]:
    """(name, text, element) of every part; elements before attributes, so that they win."""
    for child in root:
        name = child.get("name", "extra") if _folded(child.tag) == "extra" else _local(child.tag)
        text = "".join(child.itertext()) or child.get("value", "")
        yield name, text, child
    for name, value in root.attrib.items():
        yield _local(name), value, None


def _paths(text: str, element: Element | None) -> list[str]:
    """One for each child element; else one a line."""
    if element is not None and len(element):
        written = ["".join(child.itertext()) or child.get("path", "") for child in element]
        return [path[:TEXT_CHARACTERS] for path in written if path.strip()]
    return [line.strip()[:TEXT_CHARACTERS] for line in text.splitlines() if line.strip()]


def _usage(element: Element) -> NotifiedUsage:
    numbers = {_folded(child.tag): _number(child.text or "") for child in element}
    numbers |= {_folded(name): _number(value) for name, value in element.attrib.items()}
    tokens = numbers.get("tokens", numbers.get("totaltokens"))
    milliseconds = numbers.get("durationms")
    seconds = milliseconds / 1_000 if milliseconds is not None else None
    return NotifiedUsage(
        int(tokens) if tokens is not None else None,
        numbers.get("costusd", numbers.get("cost")),
        numbers.get("durations", seconds),
    )


def _number(text: str) -> float | None:
    try:
        number = float(text.strip())
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number < 1e15 else None


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


def _folded(tag: str) -> str:
    return _local(tag).casefold().replace("-", "").replace("_", "").replace(" ", "")
