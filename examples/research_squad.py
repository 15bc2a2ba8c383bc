"""A research squad: three agents at one question, who write to one another (docs/modes.md, "Teams").

    python examples/research_squad.py                                 # on a scripted model
    python examples/research_squad.py --model openai:gpt-5            # on a real one
    python examples/research_squad.py --model openai:gpt-5 "Compare …"

Shows who wrote to whom, what happened on the team's board, and what each member found. The exit code is 0 only
if the run succeeded and a report was delivered.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xclaw import Entry, Overrides, RunRequest, load_settings, open_app
from xclaw.contracts.events import RunStarted, ToolCallEnded
from xclaw.contracts.team_events import BoardChanged, MailSent

SCRIPT = Path(__file__).with_name("research_squad_script.yaml")
QUESTION = (
    "Should a small command line tool keep its history in SQLite or in JSON lines? Let a research squad of "
    "explorer, analyzer and writer find out together: the explorer collects facts, the analyzer weighs them, the "
    "writer delivers report.md of at most one page."
)
SHOWN = 100


def show(entry: Entry) -> None:
    """One line for each thing that members do with one another."""
    match entry.event:
        case RunStarted(task=task) if task is not None and task.seat is not None:
            print(f"  {task.seat.member} joins the team {task.seat.team}")
        case MailSent(sender=sender) if sender:
            print(f"  {sender} to {entry.event.to}: {entry.event.text[:SHOWN]}")
        case BoardChanged():
            print(f"  board: {entry.event.member} has {entry.event.change} {entry.event.board_task_id}")
        case ToolCallEnded(name="create_team"):
            print(f"The team's result: {entry.event.content}")
        case _:
            pass


async def research(home: Path, model: str, question: str) -> bool:
    settings = load_settings(
        cwd=home, env={**os.environ, "XCLAW_HOME": str(home)}, overrides=Overrides(models=(model,))
    )
    async with open_app(settings) as app:
        handle = await app.runs.start(RunRequest(question, "research"))
        handle.subscribe(show)
        result = await handle.result()
        delivered = [row for row in (home / "workspace" / "shared").rglob("*") if row.is_file()]
    print(f"\n{result.outcome}: {result.text or result.reason}")
    for path in delivered:
        print(f"delivered: {path}\n{path.read_text('utf-8', 'replace')}")
    return result.succeeded and bool(delivered)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--model", default=f"script:{SCRIPT}", help="as in `xclaw run`; the default is a script"
    )
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        return 0 if asyncio.run(research(Path(home), chosen.model, chosen.question)) else 1


if __name__ == "__main__":
    sys.exit(main())
