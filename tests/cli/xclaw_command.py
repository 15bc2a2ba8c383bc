"""Runs the real command, as a process of its own, in a home of its own."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from ready_command import run_ready

TIMEOUT_S = 60.0
Json = dict[str, object]

HELLO: list[object] = [
    {
        "agent": "orchestrator",
        "replies": [
            {
                "calls": [
                    {
                        "name": "delegate",
                        "arguments": {"agent": "coder", "task": "Write hello.py, printing hello."},
                    }
                ]
            },
            {"text": "All done: hello.py is written."},
        ],
    },
    {
        "agent": "coder",
        "replies": [
            {
                "calls": [
                    {
                        "name": "deliver",
                        "arguments": {"path": "{{delivery_dir}}/hello.py", "content": "print(1)\n"},
                    }
                ]
            },
            {
                "text": '{"status": "success", "summary_data": {"lines": 1}, '
                '"artifact_pointers": {"hello": "{{pointer:hello.py}}"}}'
            },
        ],
    },
]
"""An orchestrator that hands one file to a coder."""


@dataclass(frozen=True)
class Ended:
    """What a process left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Json]:
        """Standard output as JSON lines; fails on anything else."""
        return [cast("Json", json.loads(line)) for line in self.out.splitlines()]

    @property
    def document(self) -> Json:
        """Standard output as one JSON document; fails on anything else."""
        return cast("Json", json.loads(self.out))


@dataclass(frozen=True)
class Xclaw:
    """The command in one home and one working directory."""

    directory: Path

    @property
    def home(self) -> Path:
        return self.directory / "home"

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        ours = {"HOME": str(self.directory), "XCLAW_HOME": str(self.home), "XCLAW_NO_LOCAL": "1"}
        return {**kept, **ours, **extra}

    def script(self, entries: Sequence[object], name: str = "script.yaml") -> str:
        """Write a script; answers its model string."""
        (self.directory / name).write_text(yaml.safe_dump(list(entries), allow_unicode=True), "utf-8")
        return f"script:{name}"

    def __call__(self, *arguments: str, stdin: str | bytes = b"", **env: str) -> Ended:
        """Run to the end. Standard input is what is given, nothing by default."""
        done = run_ready(
            arguments,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            directory=self.directory,
            env=self.environment(env),
            timeout_s=TIMEOUT_S,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def start(
        self,
        *arguments: str,
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
    ) -> asyncio.subprocess.Process:
        """Begin, with pipes, and answer the process."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "xclaw",
            *arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.directory,
            env=self.environment(env),
        )
