"""Whether a gateway that runs is the one that the options of a chat ask for."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.options import WorkOptions
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.gateway.lock import Running
    from xclaw.settings import Settings

WORKSPACE = ("workspace", "root")
PORT = ("gateway", "port")


class Match:
    """Options that hold for a gateway's whole process: given to one that is started, asked of one that runs."""

    def __init__(self, options: WorkOptions, settings: "Settings", note: Callable[[str], None]) -> None:
        self._options = options
        self._settings = settings
        self._note = note
        self._noted = False

    @property
    def wanted(self) -> dict[str, str]:
        """Flags with their values, beside the workspace."""
        given = {
            "--dialect": self._options.dialect,
            "--worker-timeout": _number(self._options.worker_timeout),
            "--allow-shell": "on" if self._options.allow_shell else None,
            "--mode": self._options.mode,
            "--sandbox": self._options.sandbox,
            "--project": self._options.project,
            "--coordinator": "on" if self._options.coordinator else None,
        }
        return {flag: value for flag, value in given.items() if value is not None}

    @property
    def flags(self) -> list[str]:
        """What a gateway that is started for this chat is given. Unless the settings name a port, it takes
        any free one: another home may have the usual one."""
        flags = [flag if value == "on" else f"{flag}={value}" for flag, value in self.wanted.items()]
        if WORKSPACE in self._settings.sources:
            flags.append(f"--workspace={self._settings.workspace.root}")
        if PORT not in self._settings.sources:
            flags.append("--port=0")
        return flags

    def refuse_process_options(self) -> None:
        """Raises `UsageError` for options that a gateway elsewhere cannot be given."""
        given = [*self.wanted, *(["--workspace"] if self._options.workspace else [])]
        if given:
            raise UsageError(
                f"{given[0]} holds for a whole gateway and cannot be asked of one elsewhere. Leave it out."
            )

    def check(self, running: "Running") -> None:
        """Raises `UsageError` for a gateway that was started otherwise."""
        source = self._settings.sources.get(WORKSPACE, "")
        workspace = self._settings.workspace.root
        if source in ("--workspace", "XCLAW_WORKSPACE") and not _same_place(workspace, running.workspace):
            raise _differs(running, f"works in {running.workspace}, not in {workspace}")
        for flag, value in self.wanted.items():
            there = running.options.get(flag)
            if there != value:
                has = f"has {flag} {there}" if there else f"was started without {flag}"
                raise _differs(running, has)
        self._compare_sources(running)

    def _compare_sources(self, running: "Running") -> None:
        """Say once that what stands in this directory's settings does not hold there."""
        from xclaw.cli.serve import sources_of

        missing = [source for source in sources_of(self._settings) if source not in running.sources]
        if missing and not self._noted:
            self._noted = True
            self._note(
                f"the gateway was started elsewhere and has not read {missing[0]}. "
                "To have it read: xclaw serve --stop, then come back."
            )


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _same_place(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _differs(running: "Running", how: str) -> UsageError:
    return UsageError(
        f"the gateway of this home ({running.url}, process {running.pid}) {how}. Leave the option out to use "
        "that gateway; or end it first, for whoever else uses it too: xclaw serve --stop; or have another "
        "home for this work: XCLAW_HOME=DIR"
    )
