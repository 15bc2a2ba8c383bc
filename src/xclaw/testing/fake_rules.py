"""Rules of a fake provider: answers that follow from the request alone, so that a restart changes nothing.

A rules file is a script (`xclaw.testing.script_files`) in which `agent` is text that the system prompt
has, upper or lower case, and `when` is looked for in the user messages. The rule whose match is latest in the
conversation answers, the first such rule in the file on a tie; a rule without `when` matches at the
first user message. Its reply number N answers when N-1 assistant messages follow that match.

The job of an orchestrator and three workers with three turns each, 11 calls:

    - {agent: orchestrator, replies: [
        {calls: [{name: delegate, arguments: {agent: coder, task: one}}, ...two more]},
        {text: done}]}
    - {agent: coder, replies: [
        {calls: [{name: write_file, arguments: {path: a.md, content: A}}]},
        {calls: [{name: deliver, arguments: {path: "{{delivery_dir}}/a.md", content: A}}]},
        {text: {status: success, summary_data: {n: 1}, artifact_pointers: {a: "{{pointer:a.md}}"}}}]}
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from xclaw.testing.fake_replies import Calls, Cut, Raw, Reply, Status, Text, delta
from xclaw.testing.placeholders import Conversation, Unfilled
from xclaw.testing.script_files import ScriptedReply, ScriptEntry, load_script
from xclaw.testing.wire_reading import WireMessage, wire_messages

_FAILURES = {"unavailable": 503, "rejected": 400}


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int
    agent: str
    when: re.Pattern[str] | None
    replies: tuple[ScriptedReply, ...]

    def match(self, system: str, messages: Sequence[WireMessage]) -> int | None:
        """The position of the message that this rule answers."""
        if self.agent not in system:
            return None
        positions = (at for at, message in enumerate(messages) if message.role == "user")
        if self.when is None:
            return next(positions, None)
        found = [at for at in positions if self.when.search(messages[at].text)]
        return found[-1] if found else None


class FakeRules:
    """Answers a request's body by rules. Holds no state.

    `chunks` cuts every text into about that many deltas; 0 leaves it whole.
    """

    def __init__(self, entries: Sequence[ScriptEntry], chunks: int = 0) -> None:
        self._chunks = chunks
        self._rules = [
            _Rule(number, entry.agent.lower(), re.compile(entry.when) if entry.when else None, entry.replies)
            for number, entry in enumerate(entries, 1)
        ]

    @classmethod
    def from_file(cls, path: Path, chunks: int = 0) -> "FakeRules":
        """Raises `UsageError`."""
        return cls(load_script(path), chunks)

    def answer(self, body: dict[str, object]) -> Reply:
        """The reply to a request; a 400 that says why when no rule has one."""
        messages = wire_messages(body.get("messages"))
        system = "\n".join(m.text for m in messages if m.role in ("system", "developer")).lower()
        best: tuple[int, _Rule] | None = None
        for rule in self._rules:
            at = rule.match(system, messages)
            if at is not None and (best is None or at > best[0]):
                best = (at, rule)
        if best is None:
            return _refusal("no rule matches this request")
        at, rule = best
        index = sum(message.role == "assistant" for message in messages[at:])
        if index >= len(rule.replies):
            return _refusal(
                f"rule {rule.number} has {len(rule.replies)} replies, number {index + 1} was asked for"
            )
        said = Conversation([message.text for message in messages if message.role != "assistant"])
        try:
            return self._reply(rule.replies[index], said)
        except Unfilled as error:
            return _refusal(f"rule {rule.number}, reply {index + 1}: {error}")

    def _reply(self, scripted: ScriptedReply, conversation: Conversation) -> Reply:
        if scripted.fail == "interrupted":
            return Raw(delta(conversation.fill(scripted.after)), Cut())
        if scripted.fail is not None:
            return Status(_FAILURES[scripted.fail])
        text = _text(scripted.text, conversation)
        if scripted.calls:
            calls = [
                (f"call_{number}", call.name, _text(call.arguments, conversation))
                for number, call in enumerate(scripted.calls)
            ]
            return Calls(*calls, text=text)
        return Text(text, chunk=-(-len(text) // self._chunks) if self._chunks else None)


def _text(value: str | dict[str, object] | None, conversation: Conversation) -> str:
    if isinstance(value, dict):
        return msgspec.json.encode(conversation.fill_all(value)).decode()
    return conversation.fill(value or "")


def _refusal(reason: str) -> Status:
    return Status(400, {"error": {"message": f"FakeProvider: {reason}", "code": "no_rule"}})
