"""A small monorepo refactored in coordinator mode: research, plan, implementation, verification (docs/coordinator.md).

    python examples/monorepo_refactor.py                       # on a scripted model
    python examples/monorepo_refactor.py --model openai:gpt-5  # on a real one

Makes a real git repository with three packages, each with a `slugify` of its own, and has the coordinator move it
into one. Real tests decide. On the script the first verification fails, since the shared function lacks
what one package needs, and the second passes. In the end the change is committed on a branch and tested once
more, without xclaw. The exit code is 0 only if all of that happened.

Agents run commands on this machine, without a sandbox: nobody asks you.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xclaw import Entry, Overrides, Result, RunRequest, load_settings, open_app
from xclaw.contracts.events import ChildEnded, PhaseChanged

SCRIPT = Path(__file__).with_name("monorepo_refactor_script.yaml")
PACKAGES = ("textkit", "catalog", "reports")
TEXTKIT = "def title(text: str) -> str:\n    return ' '.join(word.capitalize() for word in text.split())\n"
CATALOG = """\
import re


def slugify(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def path_of(product):
    return f"/products/{slugify(product)}"
"""
REPORTS = """\
import re


def slugify(text, max_length=40):
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return slug[:max_length].rstrip("-")


def file_of(report):
    return f"{slugify(report, max_length=12)}.html"
"""
TESTS = {
    "textkit": "self.assertEqual(textkit.title('two words'), 'Two Words')",
    "catalog": "self.assertEqual(catalog.path_of('Blue Tea, 50 g'), '/products/blue-tea-50-g')",
    "reports": "self.assertEqual(reports.file_of('Quarterly numbers 2026'), 'quarterly-nu.html')",
}
REQUEST = """\
Refactor the monorepo at {repo} (git; packages textkit, catalog, reports, each in packages/NAME with NAME.py and
test_NAME.py; Python, unittest). catalog and reports each have a `slugify` of their own. There should be one: in
textkit, used by both, with tests for it in textkit, and no other `def slugify` left. What the packages do must not
change, and their tests stay as they are. Deliver each changed file under its path in the repository. To verify: clone the
repository into a directory `tree`, copy the delivered `packages` over it, then run in `tree`
`PYTHONPATH=packages/textkit:packages/catalog:packages/reports {python} -m unittest discover -s packages/NAME` for
each package, and check that `def slugify` stands only once.
"""


def make_repository(repo: Path) -> None:
    sources = {"textkit": TEXTKIT, "catalog": CATALOG, "reports": REPORTS}
    for name in PACKAGES:
        package = repo / "packages" / name
        package.mkdir(parents=True)
        (package / f"{name}.py").write_text(sources[name], "utf-8")
        (package / f"test_{name}.py").write_text(
            f"import unittest\n\nimport {name}\n\n\nclass Test(unittest.TestCase):\n"
            f"    def test_it(self):\n        {TESTS[name]}\n",
            "utf-8",
        )
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "Three packages")


def git(repo: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(repo), *words], check=True)


def commit(repo: Path, message: str) -> None:
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=example", "-c", "user.email=e@example.org", "commit", "-q", "-m", message)


def tests_pass(tree: Path) -> bool:
    """The tests of all packages, and one `slugify` in all of them."""
    paths = os.pathsep.join(str(tree / "packages" / name) for name in PACKAGES)
    environment = {"PATH": os.defpath, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    for name in PACKAGES:
        command = [sys.executable, "-m", "unittest", "discover", "-s", str(tree / "packages" / name)]
        if subprocess.run(command, cwd=tree, env=environment, check=False).returncode != 0:
            return False
    sources = "".join(file.read_text("utf-8") for file in (tree / "packages").rglob("*.py"))
    return sources.count("def slugify") == 1


def model_of(name: str, repo: Path, home: Path) -> str:
    """The model string; of the script, with the repository's path in it."""
    if name != "script":
        return name
    text = SCRIPT.read_text("utf-8").replace("@REPO@", str(repo)).replace("@PYTHON@", sys.executable)
    script = home / "script.yaml"
    script.write_text(text, "utf-8")
    return f"script:{script}"


def show(entry: Entry) -> None:
    event = entry.event
    if not isinstance(event, PhaseChanged):
        return
    for run in event.checks:
        print(f"    exit code {run.exit_code}: {run.command}")
    where = f"{event.phase}, round {event.round} of {event.rounds}"
    if event.part:
        print(f"  {event.done}/{event.total} {event.agent}, {event.part}: {event.outcome}")
    else:
        print(where if event.verdict is None else f"verification {event.verdict}; {where}", flush=True)


async def coordinate(model: str, repo: Path, home: Path) -> tuple[Result, list[Entry]]:
    """The whole run in a home of its own."""
    settings = load_settings(
        cwd=home,
        env={**os.environ, "XCLAW_HOME": str(home)},
        overrides=Overrides(models=(model,), coordinator=True, allow_shell=True),
    )
    async with open_app(settings) as app:
        text = REQUEST.format(repo=repo, python=sys.executable)
        handle = await app.runs.start(RunRequest(text, "example", agent="coordinator"))
        handle.subscribe(show)
        result = await handle.result()
        return result, await app.journal.read_tree(handle.root_id)


def apply(entries: Sequence[Entry], repo: Path) -> list[str]:
    """Put what workers delivered on a branch, later deliveries over earlier ones; answers the files."""
    git(repo, "checkout", "-q", "-b", "one-slugify")
    files: list[str] = []
    for entry in entries:
        if isinstance(entry.event, ChildEnded):
            for pointer in entry.event.result.pointers.values():
                _, found, name = pointer.path.partition("/packages/")
                if found:
                    shutil.copyfile(pointer.path, repo / "packages" / name)
                    files.append(f"packages/{name}")
    commit(repo, "One slugify")
    return sorted(set(files))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="script", help="PROVIDER:MODEL; without it, a script")
    parser.add_argument("--keep", metavar="DIR", help="work here, and leave it there")
    chosen = parser.parse_args(arguments)
    place = Path(chosen.keep or tempfile.mkdtemp(prefix="xclaw-example-")).resolve()
    repo, home = place / "monorepo", place / "home"
    try:
        home.mkdir(parents=True)
        make_repository(repo)
        result, entries = asyncio.run(coordinate(model_of(chosen.model, repo, home), repo, home))
        print(f"\n{result.outcome}: {result.text}\n{result.reason}".rstrip())
        if result.outcome != "success":
            return 1
        events = [entry.event for entry in entries]
        verdicts = [event.verdict for event in events if isinstance(event, PhaseChanged) and event.verdict]
        if chosen.model == "script" and verdicts != ["failed", "passed"]:
            print(f"the script fails once and then passes; here it was {verdicts}")
            return 1
        print("\n".join(apply(entries, repo)))
        return 0 if tests_pass(repo) else 1
    finally:
        if not chosen.keep:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
