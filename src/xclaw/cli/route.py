"""`xclaw route`: who would answer a request, and why; how well the rules do on labelled requests."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from xclaw.cli.failures import DONE, FAILED, complain
from xclaw.cli.opening import run_to_end, settings_of_workspace
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.gateway.routing.router import Decision, Router
    from xclaw.gateway.routing.rules import Rule
    from xclaw.settings import Settings

PROGRESS_LINES = 1_000
MAX_LINE_BYTES = 4_000_000
SHOWN_TEXT = 100
WIDTH = 100


@dataclass(frozen=True, slots=True)
class _Labelled:
    """One line of a file of labelled requests."""

    text: str
    route: str


@dataclass(frozen=True, slots=True)
class _Miss:
    line: int
    wanted: str
    got: str
    reason: str
    text: str


@dataclass(slots=True)
class _Tally:
    """What a check has found so far."""

    right: int = 0
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    misses: list[_Miss] = field(default_factory=list[_Miss])
    bad_lines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    @property
    def checked(self) -> int:
        return self.right + len(self.misses)


def explain(text: str, workspace: str | None, *, as_json: bool) -> int:
    """Who would answer `text`, by which words, and why each other rule would not. Asks no model."""
    settings = settings_of_workspace(workspace)
    router = _router(settings)

    async def main() -> int:
        decision = await router.route(text)
        if as_json:
            from xclaw.cli.output import print_indented

            print_indented(_decision_form(decision))
        else:
            _print_decision(decision, settings)
        return DONE

    return run_to_end(main())


def check(path: str, workspace: str | None, *, as_json: bool) -> int:
    """Route each line `{"text": …, "route": …}` of a file by mentions and rules; 1 when any is wrong or unreadable.

    Raises `UsageError` when the file cannot be read or holds no line.
    """
    router = _router(settings_of_workspace(workspace))
    tally = _Tally()

    async def main() -> int:
        with _opened(path) as file:
            for number, line in _lines(file):
                await _check_line(router, number, line, tally)
                if number % PROGRESS_LINES == 0:
                    print(f"{number:,} lines, {len(tally.misses):,} missed", file=sys.stderr)
        return DONE

    run_to_end(main())
    if not tally.checked and not tally.bad_lines:
        raise UsageError(
            f'{path}: there is nothing to check. Lines should be like {{"text": "…", "route": "…"}}.'
        )
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(_tally_form(tally))
    else:
        _print_tally(tally)
    return FAILED if tally.misses or tally.bad_lines else DONE


def show_rules(workspace: str | None, *, as_json: bool) -> int:
    """The rules in the order in which they are tried, with the words that they look for."""
    from xclaw.gateway.routing.rules import load_rules

    book = load_rules(settings_of_workspace(workspace).router.rules_files)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"rules": [msgspec.to_builtins(rule) for rule in book.rules]})
        return DONE
    for number, rule in enumerate(book.rules, 1):
        source = "" if rule.source == "built-in" else f"  ({printable(rule.source)})"
        print(f"{number}. {printable(rule.name)} -> {printable(rule.agent)}{source}")
        _print_words(rule)
    return DONE


def _router(settings: "Settings") -> "Router":
    from xclaw.agents.loader import load_agents
    from xclaw.gateway.routing.router import Router
    from xclaw.gateway.routing.rules import load_rules

    registry, warnings = load_agents(settings.agents)
    for warning in (*settings.warnings, *warnings):
        complain(f"warning: {warning}")
    return Router(load_rules(settings.router.rules_files), registry.roster(), registry.resolve)


def _print_decision(decision: "Decision", settings: "Settings") -> None:
    route = decision.route
    print(f"{printable(route.agent)}  ({route.by})")
    print(one_line(route.reason, 300))
    for considered in decision.considered:
        target = f"{one_line(considered.rule, 40)} -> {one_line(considered.agent, 40)}"
        words = ", ".join(one_line(word, 40) for word in considered.words[:8])
        if considered.matched:
            print(f"  yes  {target}: {words}")
        else:
            seen = f" (saw {words})" if words else ""
            print(f"  no   {target}: {one_line(considered.why_not, 200)}{seen}")
    if "model" in settings.router.order and route.by not in ("mention",):
        place = "before the rules" if settings.router.order[0] == "model" else "when no rule decides"
        print(f"The router model {printable(settings.router.model)} is asked {place}; it was not asked here.")


def _decision_form(decision: "Decision") -> dict[str, object]:
    route = decision.route
    return {
        "agent": route.agent,
        "by": route.by,
        "rule": route.rule,
        "reason": route.reason,
        "text": decision.text,
        "considered": [msgspec.to_builtins(considered) for considered in decision.considered],
    }


def _opened(path: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if path == "-" else Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"{path}: it cannot be read: {error.strerror}.") from None


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its number; of one that is too long, only its beginning."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        whole = line.endswith(b"\n")
        while not whole and (rest := file.readline(MAX_LINE_BYTES)):
            whole = rest.endswith(b"\n")
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


async def _check_line(router: "Router", number: int, line: bytes, tally: _Tally) -> None:
    if not line.strip():
        return
    try:
        labelled = msgspec.json.decode(line, type=_Labelled)
    except (msgspec.DecodeError, UnicodeError) as error:
        tally.bad_lines.append((number, f'{error}. It should be like {{"text": "…", "route": "…"}}.'))
        return
    if router.named(labelled.route) is None:
        tally.bad_lines.append((number, f"there is no agent {labelled.route[:60]!r}"))
        return
    wanted = cast("str", router.named(labelled.route))
    route = (await router.route(labelled.text)).route
    tally.confusion[wanted, route.agent] += 1
    if route.agent == wanted:
        tally.right += 1
    else:
        shown = one_line(labelled.text, SHOWN_TEXT)
        tally.misses.append(_Miss(number, wanted, route.agent, one_line(route.reason, 200), shown))


def _print_tally(tally: _Tally) -> None:
    for miss in tally.misses:
        print(f"line {miss.line}: {miss.text}")
        print(f"    should go to {miss.wanted}, went to {miss.got}: {miss.reason}")
    for number, reason in tally.bad_lines:
        complain(f"line {number}: {one_line(reason, 200)}")
    percent = 100 * tally.right / tally.checked if tally.checked else 0.0
    print(f"{tally.right} of {tally.checked} right ({percent:.1f} %)")
    width = max((len(wanted) for wanted, _ in tally.confusion), default=0)
    for (wanted, got), count in sorted(tally.confusion.items()):
        print(f"  {wanted:{width}} -> {got:{width}} {count:6}{'' if wanted == got else '  wrong'}")
    if tally.bad_lines:
        print(f"{len(tally.bad_lines)} lines could not be read")


def _tally_form(tally: _Tally) -> dict[str, object]:
    return {
        "checked": tally.checked,
        "right": tally.right,
        "accuracy": tally.right / tally.checked if tally.checked else None,
        "confusion": [
            {"wanted": wanted, "got": got, "count": count}
            for (wanted, got), count in sorted(tally.confusion.items())
        ],
        "misses": [msgspec.to_builtins(miss) for miss in tally.misses],
        "bad_lines": [{"line": number, "reason": reason} for number, reason in tally.bad_lines],
    }


def _print_words(rule: "Rule") -> None:
    import textwrap

    rows = [("any of the words", rule.words), ("none of", rule.unless)]
    for ask in rule.asks:
        rows.append(("asked to", ask.verbs))
        rows.append(("  … one of", ask.objects))
        rows.append(("  … or its", ask.parts))
        rows.append(("  … behind", ask.behind))
    rows += [("is about", rule.topics), ("is about code and", (*rule.code_topics, *rule.weak_topics))]
    rows += [("examples", rule.examples)]
    for label, words in rows:
        if words:
            shown = ", ".join(one_line(word, 60) for word in words)
            print(textwrap.fill(shown, WIDTH, initial_indent=f"   {label}: ", subsequent_indent="      "))
