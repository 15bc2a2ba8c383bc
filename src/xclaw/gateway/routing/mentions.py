"""`@coder …`: a request that names who should answer it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from xclaw.gateway.routing.own_text import own_text

LONGEST_NAME = 40
"""Characters of a name that are tried where nothing separates it from the text behind it."""
LAST_NAME = 130
MAX_MENTIONS = 8

_LATIN = re.compile(r"[A-Za-z0-9_.\-]")
_NAME_ENDS = re.compile(r"[\s,.;:!?，。；：！？、()（）\[\]{}<>\"'`@＠]")
_AFTER = " \t\r\n,:;，：；、。.!！-—"
_LAST = re.compile(r"(?:\A|[\s，。！？、,.!?]|(?<=[\u3400-\u9fff]))[@＠]([^\s@＠]{1,120})[\s.。!！]*\Z")


@dataclass(frozen=True, slots=True)
class Mention:
    """Who is addressed, and what is left of the text without the name."""

    agents: tuple[str, ...]
    text: str


def find_mention(text: str, resolve: Callable[[str], str | None]) -> Mention | None:
    """The agents named at the beginning of `text`, or alone at its end; None when nobody is.

    `resolve` gives the agent that a written name means. A name that it does not know is no mention.
    """
    agents: list[str] = []
    rest = text.lstrip()
    while rest[:1] in ("@", "＠") and len(agents) < MAX_MENTIONS:
        found = _leading(rest[1 : LAST_NAME * 2], resolve)
        if found is None:
            break
        agents.append(found[0])
        rest = rest[1 + found[1] :].lstrip(_AFTER)
    if not agents:
        return _at_the_end(text, resolve)
    return Mention(tuple(dict.fromkeys(agents)), rest.rstrip() or text.strip())


def _leading(written: str, resolve: Callable[[str], str | None]) -> tuple[str, int] | None:
    """The agent whose name `written` begins with, and the name's length; the longest name wins."""
    if not written[:1].strip():
        return None
    for end in reversed(_possible_ends(written)):
        name = written[:end]
        agent = resolve(name)
        if agent is not None:
            return agent, end
    return None


def _possible_ends(written: str) -> list[int]:
    """Where a name may end: before a space or mark, and anywhere but inside a Latin word."""
    ends: list[int] = []
    spaces = 0
    for index, character in enumerate(written[: LONGEST_NAME + 1]):
        last = index == len(written) - 1
        if _NAME_ENDS.match(character) and character != ".":
            if index:
                ends.append(index)
            spaces += 1
            if character != " " or spaces > 2:
                return ends
        elif last or not (_LATIN.match(character) and _LATIN.match(written[index + 1])):
            ends.append(index + 1)
    return ends


def _at_the_end(text: str, resolve: Callable[[str], str | None]) -> Mention | None:
    found = _LAST.search(text[-LAST_NAME:])
    if found is None or not own_text(text).rstrip(" .。!！\n").endswith(found[1].rstrip(".。!！")):
        return None
    agent = resolve(found[1].rstrip(".。!！"))
    if agent is None:
        return None
    at = max(text.rfind("@"), text.rfind("＠"))
    return Mention((agent,), text[:at].rstrip() or text.strip())
