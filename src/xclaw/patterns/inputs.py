"""Artifacts that are handed on to a child, by path."""

import asyncio
import re
from collections.abc import Callable, Iterator

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.workspaces import Workspace
from xclaw.patterns.arguments import as_list, as_mapping, parsed_value, shown

FindArtifact = Callable[[str], Pointer | None]
"""The delivered artifact at a path, verified, or None. Reads the disk."""

MAX_INPUTS = 50
MAX_MENTIONS = 50

_EXAMPLE = 'inputs=["/.../shared/a1b2c3/report.md"]'
_QUOTED = re.compile(
    r"[\"'`“‘「『]([^\"'`”’」』\n]{0,500}?shared[/\\][0-9a-f]{6}[/\\][^\"'`”’」』\n]{1,300})[\"'`”’」』]"
)
_BARE = re.compile(
    r"[^\s\"'`“”‘’「」『』<>|*]{0,500}?shared[/\\][0-9a-f]{6}[/\\][^\s\"'`“”‘’「」『』<>|*，。；、！？]{1,300}"
)
_END = ".,;:!?)]}）】》：…"


async def handed_on(
    value: object, texts: list[str], find_artifact: FindArtifact, workspace: Workspace
) -> tuple[Pointer, ...]:
    """The artifacts named in an `inputs` argument, and those whose path a task text names.

    Only what `workspace`, the asking run's own, may read is handed on: nobody gives away what is not
    theirs. Raises `ToolFailed` for an input that is no such artifact; a path in a text that is none is
    left alone, since it may be anything.
    """
    if value in (None, "", []) and not any("shared" in text for text in texts):
        return ()  # nearly every task: not worth a thread
    return await asyncio.to_thread(_handed_on, value, texts, _readable(find_artifact, workspace))


def _readable(find_artifact: FindArtifact, workspace: Workspace) -> FindArtifact:
    def find(path: str) -> Pointer | None:
        pointer = find_artifact(path)
        if pointer is None:
            return None
        try:
            workspace.read(pointer.path, 0, 1)
        except ToolFailed:
            return None
        return pointer

    return find


def _handed_on(value: object, texts: list[str], find_artifact: FindArtifact) -> tuple[Pointer, ...]:
    found: dict[str, Pointer] = {}
    for index, path in enumerate(_paths(value)):
        pointer = find_artifact(path)
        if pointer is None:
            raise ToolFailed(
                f"inputs[{index}]: {shown(path)} is not an artifact that you were given. Use a path from the "
                "artifact_pointers of a result; put small material into the task itself"
            )
        found[pointer.path] = pointer
    for text in texts:
        for pointer in _mentioned(text, find_artifact):
            found[pointer.path] = pointer
    return tuple(found.values())


def _paths(value: object) -> list[str]:
    if value is None or value == "":
        return []
    parsed = parsed_value(value) if isinstance(value, str) else value
    mapping = as_mapping(parsed)
    items = list(mapping.values()) if mapping is not None else as_list(parsed)
    if items is None and isinstance(value, str) and value.strip()[:1] not in ("[", "{"):
        items = [part for part in re.split(r"[,\n]", value) if part.strip()]
    if items is None:
        raise ToolFailed(f"`inputs` must be a list of paths, not {shown(value)}, e.g. {_EXAMPLE}")
    if len(items) > MAX_INPUTS:
        raise ToolFailed(f"`inputs` has {len(items)} paths; at most {MAX_INPUTS} can be handed on")
    paths: list[str] = []
    for index, item in enumerate(items):
        if not isinstance(item, str) or not item.strip():
            raise ToolFailed(f"inputs[{index}] must be a path, not {shown(item)}, e.g. {_EXAMPLE}")
        paths.append(item.strip())
    return paths


def _mentioned(text: str, find_artifact: FindArtifact) -> Iterator[Pointer]:
    spans = [match.group(1) for match in _QUOTED.finditer(text)] + _BARE.findall(text)
    for span in dict.fromkeys(spans[:MAX_MENTIONS]):
        pointer = next(filter(None, map(find_artifact, _candidates(span))), None)
        if pointer is not None:
            yield pointer


def _candidates(span: str) -> Iterator[str]:
    """Readings of a path in prose: as it stands, without what sticks to its end or its beginning.

    Chinese is written without spaces, so words touch a path on both sides.
    """
    seen: set[str] = set()
    ascii_end = re.match(r"[\x21-\x7e]+", span[span.index("shared") :])
    ends = [span, span.rstrip(_END)]
    if ascii_end:
        ends.append((span[: span.index("shared")] + ascii_end.group()).rstrip(_END))
    for end in ends:
        starts = [end]
        if "/" in end:
            starts.append(end[end.index("/") :])
        before, _, after = end.partition("shared")
        starts.append(re.sub(r"^.*[^\x21-\x7e]", "", before) + "shared" + after)
        for candidate in starts:
            if candidate not in seen:
                seen.add(candidate)
                yield candidate
