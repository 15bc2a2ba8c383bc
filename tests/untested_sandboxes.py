"""Says at the end which sandboxes could not be tested here, and why: a skipped test alone is easily missed."""

from collections.abc import Iterable, Sequence
from typing import Protocol, cast


class _Report(Protocol):
    nodeid: str
    longrepr: object


class _Terminal(Protocol):
    stats: dict[str, Sequence[_Report]]

    def section(self, title: str) -> None: ...
    def line(self, text: str) -> None: ...


def pytest_terminal_summary(terminalreporter: _Terminal) -> None:
    """A hook of pytest; with several processes it is asked in the one that tells."""
    reasons = sorted(set(_reasons(terminalreporter.stats.get("skipped", ()))))
    if reasons:
        terminalreporter.section("sandboxes that were not tested")
        for reason in reasons:
            terminalreporter.line(reason)


def _reasons(reports: Iterable[_Report]) -> Iterable[str]:
    for report in reports:
        if "sandbox" in report.nodeid and isinstance(report.longrepr, tuple):
            yield str(cast("tuple[object, ...]", report.longrepr)[-1]).removeprefix("Skipped: ")
