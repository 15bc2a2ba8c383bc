"""The main job on the embedded model, ten requests: how often it is split, delivered and answered.

    python -m benchmarks.embedded [first try] [last try]

Not part of `python -m benchmarks`: it takes about half an hour and needs `xclaw[local]`. A try counts as
done when at least two workers ran, at least one file was delivered and the run ended as a success.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from xclaw.app import App, open_app
from xclaw.contracts.events import ArtifactDelivered, ChildSpawned
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, load_settings

REQUESTS = (
    "Write a Python function slugify(text) with tests, and a short README for it",
    "Write a Python module for a todo list stored in JSON, with tests, and a user guide",
    "帮我写一个 Python 函数 is_palindrome(text)，写好测试，再写一份简短的使用说明",
    "Implement a Node.js JWT helper with sign and verify (HS256), review it for security, and document it",
    "Write a bash script backup.sh that archives a folder, and a README that explains how to schedule it",
    "Create a CSV to JSON converter in Python, have it reviewed, and write documentation",
    "用 JavaScript 写一个防抖函数 debounce，做代码审查，最后写一份说明文档",
    "Write a Python class Stack with push, pop and peek, unit tests for it, and a one-page guide",
    "Write a SQL schema for a small library (books, members, loans) and a document that explains each table",
    "Write a Python function that validates e-mail addresses, tests for it, and a security review",
)
TIMEOUT_S = 900


async def attempt(app: App, number: int, request: str) -> bool:
    began = time.monotonic()
    handle = await app.runs.start(RunRequest(request, f"try{number}"))
    result = await handle.result()
    entries = await app.journal.read_tree(handle.root_id)
    workers = [e.event.task.agent for e in entries if isinstance(e.event, ChildSpawned)]
    files = {Path(e.event.pointer.path).name for e in entries if isinstance(e.event, ArtifactDelivered)}
    done = result.succeeded and len(workers) >= 2 and bool(files)
    print(
        f"{number:2d} {'done' if done else 'not done':8} {result.outcome:10} {time.monotonic() - began:4.0f} s  "
        f"workers: {', '.join(workers) or '-'}  files: {', '.join(sorted(files)) or '-'}  {result.reason}",
        flush=True,
    )
    return done


async def measure(first: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        env = {"XCLAW_HOME": home, "HOME": str(Path.home())}
        settings = load_settings(
            cwd=Path(home), env=env, overrides=Overrides(models=("local",), timeout_s=TIMEOUT_S)
        )
        async with open_app(settings) as app:
            done = [await attempt(app, n, REQUESTS[n - 1]) for n in range(first, last + 1)]
    print(f"{sum(done)} of {len(done)} done")


if __name__ == "__main__":
    bounds = [int(argument) for argument in sys.argv[1:3]]
    asyncio.run(measure(*bounds) if len(bounds) == 2 else measure(1, len(REQUESTS)))
