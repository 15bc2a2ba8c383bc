"""Runs that work on a user's project (SPEC F4): what they see, what comes back, and how they end."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from behaviour.coordinated import EXPLORER, QUESTIONS, call, coordinator, planned, reported, worker
from behaviour.full import full, sandboxed
from behaviour.harness import Script, Seen, ask, settings_for, write_script
from workspaces.projects.project_play import NUMBERS, UserRepository
from xclaw.app import App, open_app
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import ModelAnswered, PhaseChanged, RunEnded, RunStarted, ToolCallEnded
from xclaw.contracts.projects import ProjectMerged
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Settings

TOP = NUMBERS.replace("1\n2\n", "one\n2\n", 1)
END = NUMBERS.replace("30\n", "thirty\n")


def change(path: str, content: str) -> dict[str, object]:
    return call("write_file", path=f"project/{path}", content=content)


def repository(tmp_path: Path) -> UserRepository:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"numbers.txt": NUMBERS, "read.me": "hello\n", ".env": "KEY=1\n"})
    return theirs


def settings(tmp_path: Path, script: Script, theirs: UserRepository, **project: object) -> Settings:
    found = settings_for(tmp_path / "home", write_script(tmp_path / "home", script))
    chosen = replace(found.project, directory=str(theirs.directory), durable=False, **project)  # pyright: ignore[reportArgumentType] - test shorthand
    return replace(found, project=chosen)


def run(tmp_path: Path, script: Script, theirs: UserRepository, **fields: Any) -> Seen:
    async def main() -> Seen:
        async with open_app(settings(tmp_path, script, theirs)) as app:
            return await ask(app, "Change the numbers.", **fields)

    return asyncio.run(main())


def outputs(seen: Seen, tool: str) -> list[str]:
    return [event.content for event in seen.events(ToolCallEnded) if event.name == tool]


def test_a_reader_sees_the_snapshot_and_nothing_beside_it(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    script: Script = [
        worker(
            "reviewer",
            call("view_file", path="{{project}}/read.me"),
            call("list_dir", path="{{project}}"),
            call("view_file", path="{{project}}/.env"),
            call("write_file", path="{{project}}/read.me", content="x"),
            call("view_file", path=str(theirs.directory / "read.me")),
            {"text": "seen"},
        )
    ]

    async def main() -> Seen:
        async with open_app(settings(tmp_path, script, theirs)) as app:
            project = app.projects.open(str(theirs.directory))
            place = app.projects.place(project)
            text = (tmp_path / "home/script.yaml").read_text().replace("{{project}}", place)
            (tmp_path / "home/other.yaml").write_text(text)
            return await ask(app, "Look.", agent="reviewer", models=(f"script:{tmp_path}/home/other.yaml",))

    seen = asyncio.run(main())
    read, secret, outside = outputs(seen, "view_file")
    assert "hello" in read
    assert "does not exist" in secret
    assert "outside" in outside
    assert "snapshots/" in outside.partition("Allowed: ")[2], "the project can be read, too"
    assert ".env" not in outputs(seen, "list_dir")[0]
    assert outputs(seen, "write_file")[0].startswith("error:")
    (started,) = seen.events(RunStarted)
    assert (started.worktree, started.project is not None) == (False, True)
    assert "[Project: " in started.instructions


def test_two_workers_at_once_come_back_as_one_branch(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    before = theirs.fingerprint()
    script: Script = [
        {
            "agent": "orchestrator",
            "replies": [
                {
                    "calls": [
                        {
                            "name": "delegate",
                            "arguments": {"agent": name, "task": f"Change numbers.txt, the {name} part."},
                        }
                        for name in ("coder", "writer")
                    ]
                },
                {"text": "done"},
            ],
        },
        worker("coder", change("numbers.txt", TOP), call("commit", message="Top"), reported()),
        worker("writer", change("numbers.txt", END), change("doc.md", "doc"), reported()),
    ]
    seen = run(tmp_path, script, theirs)
    branch = seen.result.branch
    assert theirs.git("show", f"{branch}:numbers.txt") == TOP.replace("30\n", "thirty\n")
    assert theirs.git("show", f"{branch}:doc.md") == "doc"
    assert theirs.fingerprint() == before
    patch = Path(seen.result.pointers["changes.patch"].path).read_text()
    theirs.git("apply", stdin=patch)
    assert (theirs.directory / "doc.md").read_text() == "doc"
    assert not list((tmp_path / "home/workspace/agents").glob("*/*/project")), (
        "trees are gone when all is committed"
    )


def test_an_orchestrator_is_shown_a_conflict_and_can_have_it_mended(tmp_path: Path) -> None:
    theirs = repository(tmp_path)

    async def main() -> Seen:
        async with open_app(settings(tmp_path, _conflicting(), theirs)) as app:
            return await ask(app, "Change the numbers.")

    seen = asyncio.run(main())
    merged = [event for event in seen.events(ProjectMerged) if event.call_id]
    assert [conflict.files for conflict in merged[0].merged.conflicts] == [("numbers.txt",)]
    shown = outputs(seen, "merge_branches")[0]
    assert "conflicts in numbers.txt" in shown
    assert "<<<<<<<" in shown
    assert "numbers.txt" in seen.result.reason, "what was left out is said at the end"
    branches = theirs.git("branch", "--list", "xclaw/*", "--format=%(refname:short)").split()
    contents = {theirs.git("show", f"{branch}:numbers.txt") for branch in branches}
    assert contents == {"mine\n", "yours\n"}, "both sides are there"


def _conflicting() -> Script:
    merge: dict[str, object] = {
        "calls": [{"name": "merge_branches", "arguments": {"branches": ["{{branch:1}}", "{{branch:2}}"]}}]
    }
    return [
        {
            "agent": "orchestrator",
            "replies": [
                {
                    "calls": [
                        {
                            "name": "delegate",
                            "arguments": {"agent": name, "task": f"Rewrite numbers.txt as {name}."},
                        }
                        for name in ("coder", "writer")
                    ]
                },
                merge,
                {"text": "done"},
            ],
        },
        worker("coder", change("numbers.txt", "mine\n"), reported()),
        worker("writer", change("numbers.txt", "yours\n"), reported()),
    ]


def test_a_coordinator_merges_in_the_order_of_the_plan_and_checks_what_was_merged(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    plan = [
        planned("top", task="Change the first line of numbers.txt in the project.", writes=["numbers.txt"]),
        planned("end", agent="writer", task="Change the last line of numbers.txt.", writes=["numbers.txt"]),
        planned(
            "after",
            agent="general",
            task="Write sum.txt from numbers.txt.",
            depends_on=["top", "end"],
            writes=[],
        ),
    ]
    command = (
        "grep -q one project/numbers.txt && grep -q thirty project/numbers.txt && test -f project/sum.txt"
    )
    script: Script = [
        coordinator(
            call("research", tasks=QUESTIONS),
            call("write_plan", plan=plan),
            call("implement"),
            call("verify", checks=[{"command": command, "why": "all is there"}]),
            {"text": "done"},
        ),
        EXPLORER,
        worker("coder", change("numbers.txt", TOP), reported()),
        worker("writer", change("numbers.txt", END), reported()),
        worker(
            "general", call("view_file", path="project/numbers.txt"), change("sum.txt", "465"), reported()
        ),
        worker("verifier", call("shell", command=command), reported()),
    ]
    found = settings(tmp_path, script, theirs)
    found = replace(found, runtime=replace(found.runtime, allow_shell=True))

    async def main() -> Seen:
        async with open_app(found) as app:
            return await ask(app, "Change the numbers.", agent="coordinator")

    seen = asyncio.run(main())
    assert seen.result.outcome == "success", seen.result.reason
    (read,) = outputs(seen, "view_file")
    assert "one" in read
    assert "thirty" in read
    assert theirs.git("show", f"{seen.result.branch}:sum.txt") == "465"
    verdicts = [event.verdict for event in seen.events(PhaseChanged) if event.verdict]
    assert verdicts == ["passed"]


def test_a_conflict_in_a_plan_is_mended_by_a_task_that_depends_on_it(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    plan = [
        planned("mine", task="Write mine into numbers.txt of the project.", writes=["numbers.txt"]),
        planned(
            "yours",
            agent="writer",
            task="Write yours into numbers.txt of the project.",
            writes=["numbers.txt"],
        ),
    ]
    mend = [
        planned(
            "both",
            agent="general",
            task="Put both into numbers.txt of the project.",
            depends_on=["mine", "yours"],
        )
    ]
    check = "grep -q mine project/numbers.txt && grep -q yours project/numbers.txt"
    script: Script = [
        coordinator(
            call("research", tasks=QUESTIONS),
            call("write_plan", plan=plan),
            call("implement"),
            call("write_plan", plan=mend),
            call("implement"),
            call("verify", checks=[{"command": check, "why": "both are there"}]),
            {"text": "done"},
        ),
        EXPLORER,
        worker("coder", change("numbers.txt", "mine\n"), reported()),
        worker("writer", change("numbers.txt", "yours\n"), change("extra.txt", "e"), reported()),
        worker("general", change("numbers.txt", "mine\nyours\n"), change("extra.txt", "e"), reported()),
        worker("verifier", call("shell", command=check), reported()),
    ]
    found = settings(tmp_path, script, theirs)
    found = replace(found, runtime=replace(found.runtime, allow_shell=True))

    async def main() -> Seen:
        async with open_app(found) as app:
            return await ask(app, "Change the numbers.", agent="coordinator")

    seen = asyncio.run(main())
    assert seen.result.outcome == "success", seen.result.reason
    first, _ = outputs(seen, "implement")
    assert '"conflicts"' in first
    told = [event.input for event in seen.events(RunStarted) if event.agent == "general"]
    assert "<<<<<<<" in told[0]
    branch = seen.result.branch
    assert theirs.git("show", f"{branch}:numbers.txt") == "mine\nyours\n"
    authors = set(theirs.git("log", "--no-merges", "--format=%an", f"main..{branch}").split())
    assert authors == {"coder", "writer", "general"}, (
        "also the side that was put in by hand is in the history"
    )


def test_what_lies_in_the_tree_of_a_cancelled_worker_is_committed(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    script: Script = [worker("coder", change("half.txt", "half"), call("wait_for_ever"), reported())]
    wrote = asyncio.Event()

    async def main() -> Seen:
        async with open_app(settings(tmp_path, script, theirs)) as app:
            handle = await app.runs.start(RunRequest("Do it.", "s", agent="coder"))
            handle.subscribe(lambda entry: wrote.set() if isinstance(entry.event, ToolCallEnded) else None)
            async with asyncio.timeout(30):
                await wrote.wait()
            await handle.cancel("enough")
            return Seen(await handle.result())

    seen = asyncio.run(main())
    branch = seen.result.branch
    assert theirs.git("show", f"{branch}:half.txt") == "half"
    if seen.result.outcome == "cancelled":
        assert "cancelled" in theirs.git("log", "-1", "--format=%s", branch)


def test_a_worker_that_ran_out_of_turns_loses_nothing(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    script: Script = [worker("coder", change("half.txt", "half"), change("more.txt", "m"), {"text": "late"})]
    seen = run(tmp_path, script, theirs, agent="coder", limits=Limits(max_turns=1))
    assert seen.result.outcome == "exhausted"
    assert theirs.git("show", f"{seen.result.branch}:half.txt") == "half"
    assert "exhausted" in theirs.git("log", "-1", "--format=%s", seen.result.branch)


def test_a_process_of_its_own_has_a_tree_too(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    home = tmp_path / "home"
    (home / "agents").mkdir(parents=True)
    (home / "agents/smith.md").write_text(
        "---\nname: smith\ndescription: Works apart.\nisolation: forked, worktree\n---\nYou work.\n"
    )
    script: Script = [
        worker(
            "smith",
            change("apart.txt", "apart"),
            call("commit", message="Apart"),
            change("later.txt", "l"),
            {"text": "ok"},
        )
    ]
    seen = run(tmp_path, script, theirs, agent="smith")
    assert seen.result.succeeded, seen.result.reason
    assert theirs.git("show", f"{seen.result.branch}:apart.txt") == "apart"
    assert theirs.git("show", f"{seen.result.branch}:later.txt") == "l"


def test_in_full_mode_commands_work_in_the_tree_and_read_the_project(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    before = theirs.fingerprint()
    look = "cat /project/read.me; touch /project/x 2>&1; ls -A /project"
    script: Script = [
        {
            "agent": "orchestrator",
            "replies": [
                {
                    "calls": [
                        {
                            "name": "delegate",
                            "arguments": {"agent": name, "task": f"Do the {name} part of the project."},
                        }
                        for name in ("coder", "reviewer")
                    ]
                },
                {"text": "done"},
            ],
        },
        worker(
            "coder",
            call("shell", command="echo by-command > project/made.txt && git -C project init -q 2>&1; true"),
            call("write_file", path="/workspace/project/tool.txt", content="by tool\n"),
            call("commit", message="Both ways"),
            reported(),
        ),
        worker(
            "reviewer",
            call("shell", command=look),
            call("view_file", path="/project/read.me"),
            call("write_file", path="/project/read.me", content="x"),
            reported(),
        ),
    ]
    found = full(settings(tmp_path, script, theirs))

    async def main() -> Seen:
        async with asyncio.timeout(60), open_app(found) as app:
            return await ask(app, "go")

    seen = asyncio.run(main())
    assert sandboxed(seen)
    headers = {event.agent: event.input.split("\n\n")[1] for event in seen.events(RunStarted) if event.depth}
    assert headers == {"coder": "[Project: /workspace/project]", "reviewer": "[Project: /project]"}
    looked = next(text for text in outputs(seen, "shell") if "hello" in text)
    assert "Read-only file system" in looked
    assert ".env" not in looked
    assert "hello" in outputs(seen, "view_file")[0]
    assert any("can only be read" in text for text in outputs(seen, "write_file"))
    branch = seen.result.branch
    assert theirs.git("show", f"{branch}:made.txt") == "by-command\n"
    assert theirs.git("show", f"{branch}:tool.txt") == "by tool\n"
    assert theirs.fingerprint() == before


def test_what_a_crash_left_in_a_tree_is_committed_when_the_conversation_goes_on(tmp_path: Path) -> None:
    """K6: a process that was killed is stood in for by one that stops driving its runs."""
    theirs = repository(tmp_path)
    script: Script = [
        worker("coder", change("half.txt", "half"), call("view_file", path="x"), {"text": "ok"})
    ]
    found = settings(tmp_path, script, theirs)

    async def main() -> tuple[str, Seen]:
        async with open_app(found) as app:
            handle = await app.runs.start(RunRequest("Do it.", "s", agent="coder"))
            wrote = asyncio.Event()
            handle.subscribe(lambda entry: wrote.set() if isinstance(entry.event, ToolCallEnded) else None)
            async with asyncio.timeout(30):
                await wrote.wait()
            await app.runs.suspend()
            first = handle.run_id
        async with open_app(found) as app:
            await ask(app, "Something else.", session="s", agent="coder")
            row = await app.journal.run_row(first)
            entries = await app.journal.read_run(first)
        assert row is not None
        assert row.outcome == "interrupted"
        (ended,) = [entry.event for entry in entries if isinstance(entry.event, RunEnded)]
        return ended.result.branch, Seen(ended.result, entries)

    branch, _ = asyncio.run(main())
    assert theirs.git("show", f"{branch}:half.txt") == "half"


def test_a_run_that_is_taken_up_goes_on_in_its_tree(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    script: Script = [
        worker(
            "coder",
            change("a.txt", "a"),
            call("view_file", path="project/a.txt"),
            change("b.txt", "b"),
            {"text": "ok"},
        )
    ]
    found = settings(tmp_path, script, theirs)

    async def main() -> Seen:
        async with open_app(found) as app:
            handle = await app.runs.start(RunRequest("Do it.", "s", agent="coder"))
            wrote = asyncio.Event()
            handle.subscribe(lambda entry: wrote.set() if isinstance(entry.event, ToolCallEnded) else None)
            async with asyncio.timeout(30):
                await wrote.wait()
            await app.runs.suspend()
        theirs.write({"read.me": "changed meanwhile\n"})
        async with open_app(replace(found, project=replace(found.project, directory=""))) as app:
            return Seen(await (await app.runs.resume(handle.root_id)).result())

    branch = asyncio.run(main()).result.branch
    assert theirs.git("show", f"{branch}:a.txt") == "a"
    assert theirs.git("show", f"{branch}:b.txt") == "b"
    assert theirs.git("show", f"{branch}:read.me") == "hello\n", "it goes on from the same files"


def test_without_a_project_nothing_is_different(tmp_path: Path) -> None:
    script: Script = [worker("coder", call("commit", message="x"), {"text": "ok"})]
    seen = _plain(tmp_path, script)
    (started,) = seen.events(RunStarted)
    assert "commit" not in started.tools
    assert "project" not in started.instructions.casefold()
    assert (started.project, started.worktree, seen.result.branch) == (None, False, "")
    assert seen.events(ModelAnswered)


def _plain(tmp_path: Path, script: Script) -> Seen:
    async def main() -> Seen:
        async with open_app(settings_for(tmp_path / "home", write_script(tmp_path / "home", script))) as app:
            return await _asked(app)

    return asyncio.run(main())


async def _asked(app: App) -> Seen:
    return await ask(app, "Do it.", agent="coder")


def test_a_directory_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    found = settings(tmp_path, [worker("coder", {"text": "ok"})], theirs)
    found = replace(found, project=replace(found.project, directory=str(tmp_path / "nowhere")))

    async def main() -> str:
        async with open_app(found) as app:
            try:
                await ask(app, "Do it.", agent="coder")
            except Exception as failure:  # noqa: BLE001 - its text is looked at
                return f"{type(failure).__name__}: {failure}"
        return ""

    assert "no such directory" in asyncio.run(main())


def test_the_example_comes_back_as_one_branch(tmp_path: Path) -> None:
    theirs = repository(tmp_path)
    example = Path(__file__).parents[2] / "examples/project"
    found = settings(tmp_path, [worker("orchestrator", {"text": "unused"})], theirs)

    async def main() -> Seen:
        async with open_app(found) as app:
            request = (example / "request.txt").read_text("utf-8")
            return await ask(app, request, models=(f"script:{example}/script.yaml",))

    seen = asyncio.run(main())
    assert seen.result.outcome == "success", seen.result.reason
    changed = theirs.git("diff", "--name-only", "main", seen.result.branch).split()
    assert changed == ["GREETING.md", "greeting.py"]
