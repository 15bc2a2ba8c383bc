"""Votes in a debate: asked for as a last line, counted, with who disagreed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.unicode_forms import normal_form
from xclaw.patterns.arguments import as_list, list_of_names, shown

MAX_OPTIONS = 20
MAX_OPTION_CHARACTERS = 200

_VOTE_LINE = re.compile(
    r"^(?:[^\S\n]|[>*_`#-])*+vote[\s*_`]{0,20}[:：][\s*_`]{0,20}(.*)$", re.IGNORECASE | re.MULTILINE
)
_AROUND_VOTE = " \t\r\u3000*_`"
_TRUE = ("true", "yes", "1", "on")
_FALSE = ("false", "no", "0", "off", "none", "null", "")


@dataclass(frozen=True, slots=True)
class Ballot:
    """What can be voted for; without options, anything."""

    options: tuple[str, ...] = ()

    @property
    def instruction(self) -> str:
        """What a seat is told, after the question."""
        choice = f" where <option> is one of: {'; '.join(self.options)}" if self.options else ""
        return f"End your answer with one line of its own, exactly `VOTE: <option>`{choice}."

    def vote_of(self, text: str) -> str | None:
        """The option that an answer's last vote line names, or None."""
        lines = [vote for match in _VOTE_LINE.findall(text) if (vote := match.strip(_AROUND_VOTE))]
        if not lines:
            return None
        written = lines[-1].strip("<>")[:MAX_OPTION_CHARACTERS]
        if not self.options:
            return written
        folded = _fold(written)
        exact = [option for option in self.options if _fold(option) == folded]
        inside = [option for option in self.options if f" {_fold(option)} " in f" {folded} "]
        return exact[0] if exact else inside[0] if len(inside) == 1 else None


def ballot_argument(value: object) -> Ballot | None:
    """From the `vote` argument: true, or the options."""
    if value is None or value is False:
        return None
    if value is True:
        return Ballot()
    if isinstance(value, str):
        if value.strip().casefold() in _FALSE:
            return None
        if value.strip().casefold() in _TRUE:
            return Ballot()
    elif as_list(value) is None:
        raise ToolFailed(f"`vote` must be true, false or a list of options, not {shown(value)}")
    if value in ([], ()):
        return Ballot()
    options = tuple(dict.fromkeys(list_of_names(value, "vote", '["Redis", "SQLite"]')))
    if len(options) < 2:
        raise ToolFailed("`vote` needs at least two options, or true for a free vote")
    if len(options) > MAX_OPTIONS or max(map(len, options)) > MAX_OPTION_CHARACTERS:
        raise ToolFailed(
            f"`vote` takes at most {MAX_OPTIONS} options of at most {MAX_OPTION_CHARACTERS} characters"
        )
    return Ballot(options)


def tally(ballot: Ballot, answers: Mapping[str, str]) -> str:
    """The section that shows who voted for what, the outcome and the dissent. Takes label to answer."""
    voters: dict[str, list[str]] = {}
    spelled: dict[str, str] = {}
    silent: list[str] = []
    for label, text in answers.items():
        vote = ballot.vote_of(text)
        if vote is None:
            silent.append(label)
            continue
        voters.setdefault(_fold(vote), []).append(label)
        spelled.setdefault(_fold(vote), vote)
    ranked = sorted(voters, key=lambda option: -len(voters[option]))
    lines = ["[vote]"]
    lines += [f"{spelled[option]}: {len(voters[option])} ({', '.join(voters[option])})" for option in ranked]
    if silent:
        lines.append(f"no valid vote: {', '.join(silent)}")
    if not ranked:
        return "\n".join([*lines, "outcome: nobody voted"])
    leaders = [option for option in ranked if len(voters[option]) == len(voters[ranked[0]])]
    if len(leaders) > 1:
        lines.append(f"outcome: tie between {', '.join(spelled[option] for option in leaders)}")
    else:
        lines.append(f"outcome: {spelled[ranked[0]]}")
        dissent = [f"{label} for {spelled[option]}" for option in ranked[1:] for label in voters[option]]
        lines.append(f"dissent: {', '.join(dissent) or 'none'}")
    return "\n".join(lines)


def agree(ballot: Ballot | None, answers: Iterable[str]) -> bool:
    """All voted for the same, or, without a vote, all said the same."""
    if ballot is None:
        said = {_fold(text) for text in answers}
        return len(said) == 1
    votes = {ballot.vote_of(text) for text in answers}
    return None not in votes and len({_fold(vote or "") for vote in votes}) == 1


def _fold(text: str) -> str:
    """Case, width, punctuation and spacing do not make another answer."""
    plain = normal_form("NFKC", text).casefold()
    return " ".join(re.sub(r"[^\w+#]+", " ", plain).split())
