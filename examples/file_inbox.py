"""A channel in a folder: each new NAME.txt is a message, the answer appears beside it as NAME.reply.md.

    xclaw serve --channel examples/file_inbox.py:FileInbox

The folder is `inbox`, or what FILE_INBOX says. A file's name is the message's id: a file is answered
once, also over restarts; to ask again, use another name. All files are one conversation.
"""

import asyncio
import os
import time
from pathlib import Path

from xclaw.contracts.channels import Door, Failed, Reply, Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.messages import Message

LOOK_S = 0.5
"""Seconds between two looks into the folder. A file that has not changed between them is complete."""


class FileInbox:
    name = "files"

    def __init__(self) -> None:
        self._folder = Path(os.environ.get("FILE_INBOX", "inbox"))
        self._seen: dict[Path, int] = {}
        self._taken: set[Path] = set()

    async def serve(self, door: Door) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as answers:
            while True:
                for file in self._complete():
                    self._taken.add(file)
                    answers.create_task(self._answer(door, file))
                await asyncio.sleep(LOOK_S)

    def _complete(self) -> list[Path]:
        files = [file for file in sorted(self._folder.glob("*.txt")) if file not in self._taken]
        open_files = {f: f.stat().st_mtime_ns for f in files if not f.with_suffix(".reply.md").exists()}
        complete = [file for file, changed in open_files.items() if self._seen.get(file) == changed]
        self._seen = open_files
        return complete

    async def _answer(self, door: Door, file: Path) -> None:
        text = file.read_text("utf-8", errors="replace")
        message = Message("", "inbox", self.name, text, time.time())
        try:
            accepted = await door.dispatch(message, Wishes(client_id=file.name))
        except UsageError as refusal:
            print(f"{file}: {refusal}")
            return
        async with door.watch(accepted.session_id, accepted.after) as happening:
            async for outgoing in happening:
                if outgoing.request == accepted.message_id and isinstance(outgoing, Reply | Failed):
                    said = outgoing.text if isinstance(outgoing, Failed) else outgoing.ended.result.text
                    file.with_suffix(".reply.md").write_text(f"{said}\n", "utf-8")
                    return
