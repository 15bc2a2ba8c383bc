"""Putting branches together, in the repository alone: no working directory, no driver, no hook."""

import os
from collections.abc import Sequence

from xclaw.contracts.projects import Conflict, Merged
from xclaw.workspaces.projects.git import GitFailed
from xclaw.workspaces.projects.shadow import BRANCHES, Note, Shadow

MAX_DETAIL = 12_000
MAX_PART = 3_000
"""Characters shown of all conflicts, and of each file's."""
_MARKS = (b"<<<<<<< ", b">>>>>>> ")


def merge(
    shadow: Shadow, branches: Sequence[str], name: str, onto: str, resolved: Sequence[str] = ()
) -> Merged:
    """One after the other, beginning at `onto`; what conflicts is left out. The shadow is locked.

    The commits made depend on nothing but what goes into them, so the same again after a crash is the same.
    Raises `ToolFailed` for a branch that there is not.
    """
    tips = [(branch, shadow.known(branch)) for branch in branches]
    commit = onto
    taken: list[str] = []
    conflicts: list[Conflict] = []
    for branch, tip in tips:
        step = _step(shadow, commit, branch, tip)
        if isinstance(step, Conflict):
            conflicts.append(step)
            continue
        commit = step
        taken.append(branch)
    for branch in resolved:
        commit = _noted(shadow, commit, branch)
        taken.append(branch)
    ref = f"{BRANCHES}{name}"
    if shadow.commit_of(ref) != commit:
        shadow.point(ref, commit)
    return Merged(commit, name, tuple(taken), tuple(conflicts))


def _step(shadow: Shadow, commit: str, branch: str, tip: str) -> str | Conflict:
    if shadow.is_ancestor(tip, commit):
        return commit
    if shadow.is_ancestor(commit, tip):
        return tip
    code, said, _ = shadow.git.ended(
        "merge-tree", "--write-tree", "-z", "--messages", commit, f"{BRANCHES}{branch}"
    )
    tree, _, rest = said.partition(b"\0")
    if code not in (0, 1):
        raise GitFailed(f"{branch} could not be merged: git merge-tree failed ({code})")
    if code == 0:
        at = max(shadow.time_of(commit), shadow.time_of(tip))
        return shadow.commit_tree(tree.decode(), (commit, tip), Note(f"Merge {branch}", "xclaw", at))
    files, messages = _conflicts(rest)
    detail = "\n".join(part for part in (messages[:MAX_PART], _detail(shadow, tree.decode(), files)) if part)
    return Conflict(branch, commit, tuple(files), detail[:MAX_DETAIL])


def _noted(shadow: Shadow, commit: str, branch: str) -> str:
    """The branch belongs to the history, and not one file is changed by that."""
    tip = shadow.known(branch)
    if shadow.is_ancestor(tip, commit):
        return commit
    tree = shadow.git("rev-parse", f"{commit}^{{tree}}").decode().strip()
    at = max(shadow.time_of(commit), shadow.time_of(tip))
    return shadow.commit_tree(
        tree, (commit, tip), Note(f"Merge {branch}, as it was put in by hand", "xclaw", at)
    )


def _conflicts(said: bytes) -> tuple[list[str], str]:
    """The files of "mode id stage<tab>path" entries, up to an empty one; then what git says of them."""
    listed, _, messages = said.partition(b"\0\0")
    files: dict[str, None] = {}
    for entry in listed.split(b"\0"):
        about, tab, path = entry.partition(b"\t")
        if tab and len(about.split()) == 3:
            files[os.fsdecode(path)] = None
    texts = [part.decode("utf-8", "replace").strip() for part in messages.split(b"\0")]
    return list(files), "\n".join(text for text in texts if text.startswith("CONFLICT"))


def _detail(shadow: Shadow, tree: str, files: Sequence[str]) -> str:
    """The parts of each file between the markers, with a line of context around."""
    entries = shadow.files(tree)
    parts: list[str] = []
    with shadow.git.blobs() as blobs:
        for path in files[:50]:
            mode, object_id = entries.get(path, ("", ""))
            content = blobs.content(object_id) if mode in ("100644", "100755") else b""
            shown = _marked(content)
            parts.append(f"--- {path}\n{shown or '(no common text: deleted, renamed or binary on one side)'}")
    return "\n".join(parts)


def _marked(content: bytes) -> str:
    if b"\0" in content[:8_192]:
        return ""
    lines = content.split(b"\n")
    shown: list[bytes] = []
    inside = False
    for number, line in enumerate(lines):
        begins, ends = line.startswith(_MARKS[0]), line.startswith(_MARKS[1])
        if begins:
            shown.append(b"@@ line %d" % (number + 1))
            if number:
                shown.append(lines[number - 1])
        inside = inside or begins
        if inside:
            shown.append(line)
        if inside and ends:
            inside = False
            shown += lines[number + 1 : number + 2]
    return b"\n".join(shown).decode("utf-8", "replace")[:MAX_PART]
