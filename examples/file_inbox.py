"""A channel in a folder: each new NAME.txt is a message, the answer appears beside it as NAME.reply.md.

    xclaw serve --channel examples/file_inbox.py:FileInbox

The folder is `inbox`, or what FILE_INBOX says. A file's name is its message's id: it is answered once,
also over restarts. All files are one conversation.
"""

import asyncio
import os
import time
from pathlib import Path

from xclaw.contracts.channels import Door, Failed, Reply, Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.messages import Message

LOOK_S = 0.5  # between two looks into the folder; a file that has not changed meanwhile is complete


class FileInbox:
    name = "files"

    def __init__(self) -> None:
        self._folder = Path(os.environ.get("FILE_INBOX", "inbox"))
        self._seen: dict[str, int] = {}
        self._taken: set[str] = set()

    async def serve(self, door: Door) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as answers:
            while True:
                await asyncio.sleep(LOOK_S)
                try:
                    files = {file.name: file.stat().st_mtime_ns for file in os.scandir(self._folder)}
                except FileNotFoundError:  # one was taken away at this moment
                    continue
                for name in sorted(files.keys() - self._taken):
                    new = name.endswith(".txt") and f"{name[:-4]}.reply.md" not in files
                    if new and files[name] == self._seen.get(name):
                        self._taken.add(name)
                        answers.create_task(self._answer(door, self._folder / name))
                self._seen = files

    async def _answer(self, door: Door, file: Path) -> None:
        try:
            message = Message("", "inbox", self.name, file.read_text("utf-8", "replace"), time.time())
            accepted = await door.dispatch(message, Wishes(client_id=file.name))
        except (OSError, UsageError) as refusal:
            print(f"{file}: {refusal}")
            return
        async with door.watch(accepted.session_id, accepted.after) as happening:
            async for outgoing in happening:
                if outgoing.request == accepted.message_id and isinstance(outgoing, Reply | Failed):
                    said = outgoing.text if isinstance(outgoing, Failed) else outgoing.ended.result.text
                    part = file.with_suffix(".part")
                    part.write_text(f"{said}\n", "utf-8")
                    part.replace(file.with_suffix(".reply.md"))
                    return
