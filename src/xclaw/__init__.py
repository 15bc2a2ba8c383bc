"""xclaw: a multi-agent collaboration runtime.

The public names. They are imported on first use, so that `import xclaw` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xclaw.app import App, open_app
    from xclaw.contracts.agents import Agent, Limits
    from xclaw.contracts.artifacts import Pointer
    from xclaw.contracts.errors import (
        AllModelsFailed,
        ContextTooLong,
        Fenced,
        JournalError,
        LimitReached,
        ModelError,
        ModelInterrupted,
        ModelRejected,
        ModelUnavailable,
        NoModel,
        SpawnRefused,
        ToolFailed,
        UsageError,
        XclawError,
    )
    from xclaw.contracts.events import Entry, Event
    from xclaw.contracts.results import Outcome, Result
    from xclaw.contracts.usage import Spend, Usage
    from xclaw.runtime.runs import RunHandle, RunRequest
    from xclaw.settings import Overrides, Settings, load_settings

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AllModelsFailed",
    "App",
    "ContextTooLong",
    "Entry",
    "Event",
    "Fenced",
    "JournalError",
    "LimitReached",
    "Limits",
    "ModelError",
    "ModelInterrupted",
    "ModelRejected",
    "ModelUnavailable",
    "NoModel",
    "Outcome",
    "Overrides",
    "Pointer",
    "Result",
    "RunHandle",
    "RunRequest",
    "Settings",
    "SpawnRefused",
    "Spend",
    "ToolFailed",
    "Usage",
    "UsageError",
    "XclawError",
    "load_settings",
    "open_app",
]

_MODULES = {
    "Agent": "contracts.agents",
    "App": "app",
    "Entry": "contracts.events",
    "Event": "contracts.events",
    "Limits": "contracts.agents",
    "Outcome": "contracts.results",
    "Overrides": "settings",
    "Pointer": "contracts.artifacts",
    "Result": "contracts.results",
    "RunHandle": "runtime.runs",
    "RunRequest": "runtime.runs",
    "Settings": "settings",
    "Spend": "contracts.usage",
    "Usage": "contracts.usage",
    "load_settings": "settings",
    "open_app": "app",
}
"""Where each name stands; errors are all in one place."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'contracts.errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
