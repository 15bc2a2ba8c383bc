"""`xclaw worktrees`: private trees of users' projects, and the branches in them."""

import asyncio
import sys
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.opening import run_to_end, settings_of_workspace
from xclaw.cli.project_lines import commit_line
from xclaw.cli.text import printable
from xclaw.cli.worktrees_options import WorktreesOptions
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.workspaces.projects.projects import Listed, LocalProjects


_MAX_PATCH = 1_000_000_000
"""Bytes; more than a run hands in as a file."""


def worktrees(options: WorktreesOptions) -> int:
    """List the private trees of your projects, or do something with one."""
    from xclaw.workspaces.projects.projects import LocalProjects

    projects = LocalProjects(settings_of_workspace(options.workspace).project)
    return run_to_end(_work(options, projects))


async def _work(options: WorktreesOptions, projects: "LocalProjects") -> int:
    return await asyncio.to_thread(_do, options, projects)


def _do(options: WorktreesOptions, projects: "LocalProjects") -> int:
    if options.action == "list":
        _print_list(projects.trees(), as_json=options.as_json)
        return DONE
    listed = _named(projects, options.name)
    match options.action:
        case "show":
            _print_one(listed, as_json=options.as_json)
        case "patch":
            sys.stdout.buffer.write(projects.tree(listed.record).patch(_MAX_PATCH))
        case "publish":
            _publish(projects, listed)
        case "remove":
            _remove(projects, listed, force=options.force)
    return DONE


def _named(projects: "LocalProjects", name: str | None) -> "Listed":
    """By the branch, with or without `xclaw/`, or by the run's id or the beginning of it."""
    if not name:
        raise UsageError("which one? Name a branch or a run; `xclaw worktrees` lists them")
    trees = projects.trees()
    records = [listed.record for listed in trees]
    whole = [
        name in (record.branch, record.branch.removeprefix("xclaw/"), record.run_id) for record in records
    ]
    chosen = whole if any(whole) else [record.run_id.startswith(name) for record in records]
    found = [listed for listed, fits in zip(trees, chosen, strict=True) if fits]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{name[:100]!r} means {len(found)} trees; name the run, as `xclaw worktrees` lists it"
        )
    raise UsageError(
        f"no worker's tree has the branch or the run {name[:100]!r}; `xclaw worktrees` lists them. "
        "The branch that a whole run ended with is in your repository: git log, git diff"
    )


def _publish(projects: "LocalProjects", listed: "Listed") -> None:
    record = listed.record
    branch = projects.publish(record.project, record.branch)
    directory = printable(record.project.directory)
    if not branch:
        raise UsageError(
            f"{directory} is a folder, which has no branches: take the patch, xclaw worktrees patch {record.run_id}"
        )
    print(f"branch {branch} of {directory}")


def _remove(projects: "LocalProjects", listed: "Listed", *, force: bool) -> None:
    tree = projects.tree(listed.record)
    if not tree.remove(force=force):
        raise UsageError(
            f"{tree.directory} holds what is not committed; look at it, or remove it with --force"
        )
    print(f"removed {printable(tree.directory)}; its commits stay on {tree.branch}")


def _print_list(trees: "list[Listed]", *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"worktrees": [_form(listed) for listed in trees]})
        return
    if not trees:
        print("there are none: work on a project begins with `xclaw run --project DIR`")
    for listed in trees:
        record = listed.record
        count = f"{len(listed.commits)} commit{'' if len(listed.commits) == 1 else 's'}"
        place = record.directory if listed.is_there else "files removed"
        print(
            f"{record.branch}  {count}  {record.run_id}  {printable(record.project.directory)}  {printable(place)}"
        )


def _print_one(listed: "Listed", *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(_form(listed))
        return
    print(f"{listed.record.branch} of {printable(listed.record.project.directory)}")
    for commit in listed.commits:
        print(f"  {commit.id[:10]}{commit_line(commit)[1:]}")
    if listed.is_there:
        print(f"files: {printable(listed.record.directory)}")


def _form(listed: "Listed") -> dict[str, object]:
    record = listed.record
    return {
        "branch": record.branch,
        "run_id": record.run_id,
        "project": record.project.directory,
        "directory": record.directory if listed.is_there else None,
        "commits": [
            {"id": commit.id, "message": commit.message, "files": list(commit.files)}
            for commit in listed.commits
        ],
    }
