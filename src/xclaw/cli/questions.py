"""A question to a person, as text, and the person's line as an answer.

What is asked about was written by a model: every character that is not plainly visible is shown as what
it is, and long arguments are cut where it is said.
"""

import json
from typing import cast

from xclaw.contracts.approvals import Answer, Approval
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked

SHOWN_CHARS = 4_000
SHOWN_LINES = 40
RULE_CHARS = 120
LINE_CHARS = 200
HELP = "y once, s in this session, a always, n REASON no, e NEW run this instead"


def question_text(approval: Approval) -> str:
    """Who wants to do what, and why it is asked. Every line of the arguments stands behind a bar, so
    that none can look like a line of ours."""
    who = visible(" > ".join(approval.path), newlines=False)
    lines = [f"{who} asks to use {visible(approval.tool, newlines=False)}:"]
    lines += [f"  | {line}" for line in arguments_text(approval).split("\n")]
    lines.append(f"  asked because {visible(approval.why, newlines=False)}")
    return "\n".join(lines)


def approval_line(event: ApprovalAsked | ApprovalAnswered) -> str:
    """One line for whoever watches the run."""
    if isinstance(event, ApprovalAsked):
        what = visible(f"{event.tool} {event.arguments}"[:LINE_CHARS], newlines=False)
        return f"waits for permission to use {what}; answer with: xclaw approve {event.approval_id}"
    if event.decision == "void":
        return "waits for permission no more"
    reason = visible(f": {event.reason}"[:LINE_CHARS], newlines=False) if event.reason else ""
    return f"permission: {event.decision}, by {visible(event.by, newlines=False)}{reason}"


def choices_text(approval: Approval) -> str:
    """What can be answered."""
    if not approval.rule:
        return "[y] once  [n reason] no  [e new] run this instead"
    rule = visible(approval.rule, newlines=False)
    shown = rule if len(rule) <= RULE_CHARS else f"{rule[:RULE_CHARS]}[...]"
    return f"[y] once  [s] in this session  [a] always: {shown}  [n reason] no  [e new] run this instead"


def answer_from(approval: Approval, line: str) -> Answer:
    """What a person typed. Raises `UsageError` for what is no answer."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    match word.casefold():
        case "y" | "yes" | "once" if not rest:
            return Answer("once")
        case "s" | "session" if not rest:
            return Answer("session")
        case "a" | "always":
            return Answer("always", rule=rest)
        case "n" | "no" | "deny":
            return Answer("deny", reason=rest)
        case "e" | "edit" if rest:
            return Answer("edit", arguments=edited_arguments(approval, rest))
        case _:
            raise UsageError(f"that is no answer. {HELP}")


def edited_arguments(approval: Approval, text: str) -> dict[str, object]:
    """A JSON object; of a call whose only argument is a text, that text too. Raises `UsageError`."""
    if text.lstrip().startswith("{"):
        try:
            value: object = json.loads(text)
        except ValueError as error:
            raise UsageError(f"the arguments are not valid JSON: {error}") from None
        if isinstance(value, dict):
            return cast("dict[str, object]", value)
    before = _arguments(approval)
    texts = [key for key, value in before.items() if isinstance(value, str)]
    if len(texts) != 1:
        raise UsageError('the arguments must be a JSON object such as {"command": "ls"}')
    return {**before, texts[0]: text}


def arguments_text(approval: Approval) -> str:
    """The arguments of a call: a lone text as it is, others by name."""
    arguments = _arguments(approval)
    if len(arguments) == 1 and isinstance(text := next(iter(arguments.values())), str):
        return bounded(visible(text))
    lines = [
        f"{visible(key, newlines=False)}: "
        + visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in arguments.items()
    ]
    return bounded("\n".join(lines) or "(no arguments)")


def visible(text: str, *, newlines: bool = True) -> str:
    """`text` with everything that a terminal would not show as a mark of its own written as an escape:
    control characters, marks that reorder text, and spaces that are none."""
    return "".join(
        letter if letter.isprintable() or (newlines and letter == "\n") else _escape(letter)
        for letter in text
    )


def bounded(text: str) -> str:
    """The beginning and the end of a long text, and how much lies between them."""
    lines = text.split("\n")
    if len(lines) > SHOWN_LINES:
        half = SHOWN_LINES // 2
        cut = f"[... {len(lines) - 2 * half} lines are not shown; xclaw approve --json shows all ...]"
        text = "\n".join([*lines[:half], cut, *lines[-half:]])
    if len(text) > SHOWN_CHARS:
        half = SHOWN_CHARS // 2
        hidden = len(text) - 2 * half
        cut = f"\n[... {hidden:,} characters are not shown; xclaw approve --json shows all ...]\n"
        text = text[:half] + cut + text[-half:]
    return text


def _arguments(approval: Approval) -> dict[str, object]:
    try:
        value: object = json.loads(approval.arguments or "{}")
    except ValueError:
        value = None
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    return {"arguments": approval.arguments}


def _escape(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
