"""xclaw: a multi-agent collaboration runtime.

The public names. They are imported on first use, so that `import xclaw` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xclaw.app import App, GatewayApp, open_app, open_gateway
    from xclaw.contracts.agents import Agent, Limits
    from xclaw.contracts.approvals import Answer, Approval
    from xclaw.contracts.artifacts import Pointer
    from xclaw.contracts.channels import (
        Accepted,
        Channel,
        Delta,
        Door,
        Failed,
        Happened,
        Reply,
        Wishes,
    )
    from xclaw.contracts.errors import (
        AllModelsFailed,
        ContextTooLong,
        Deadlock,
        Fenced,
        JournalError,
        LimitReached,
        ModelError,
        ModelInterrupted,
        ModelRejected,
        ModelUnavailable,
        NoModel,
        NotAllowed,
        NotPermitted,
        SandboxLost,
        SandboxUnavailable,
        SessionBusy,
        SpawnRefused,
        ToolFailed,
        UsageError,
        XclawError,
    )
    from xclaw.contracts.events import Entry, Event
    from xclaw.contracts.messages import Message
    from xclaw.contracts.permissions import Rules
    from xclaw.contracts.results import Outcome, Result
    from xclaw.contracts.usage import Spend, Usage
    from xclaw.runtime.runs import RunHandle, RunRequest
    from xclaw.settings import Overrides, Settings, load_settings

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "Agent",
    "AllModelsFailed",
    "Answer",
    "App",
    "Approval",
    "Channel",
    "ContextTooLong",
    "Deadlock",
    "Delta",
    "Door",
    "Entry",
    "Event",
    "Failed",
    "Fenced",
    "GatewayApp",
    "Happened",
    "JournalError",
    "LimitReached",
    "Limits",
    "Message",
    "ModelError",
    "ModelInterrupted",
    "ModelRejected",
    "ModelUnavailable",
    "NoModel",
    "NotAllowed",
    "NotPermitted",
    "Outcome",
    "Overrides",
    "Pointer",
    "Reply",
    "Result",
    "Rules",
    "RunHandle",
    "RunRequest",
    "SandboxLost",
    "SandboxUnavailable",
    "SessionBusy",
    "Settings",
    "SpawnRefused",
    "Spend",
    "ToolFailed",
    "Usage",
    "UsageError",
    "Wishes",
    "XclawError",
    "load_settings",
    "open_app",
    "open_gateway",
]

_MODULES = {
    "Accepted": "contracts.channels",
    "Agent": "contracts.agents",
    "Answer": "contracts.approvals",
    "App": "app",
    "Approval": "contracts.approvals",
    "Channel": "contracts.channels",
    "Delta": "contracts.channels",
    "Door": "contracts.channels",
    "Entry": "contracts.events",
    "Event": "contracts.events",
    "Failed": "contracts.channels",
    "GatewayApp": "app",
    "Happened": "contracts.channels",
    "Limits": "contracts.agents",
    "Message": "contracts.messages",
    "Outcome": "contracts.results",
    "Overrides": "settings",
    "Pointer": "contracts.artifacts",
    "Reply": "contracts.channels",
    "Result": "contracts.results",
    "Rules": "contracts.permissions",
    "RunHandle": "runtime.runs",
    "RunRequest": "runtime.runs",
    "Settings": "settings",
    "Spend": "contracts.usage",
    "Usage": "contracts.usage",
    "Wishes": "contracts.channels",
    "load_settings": "settings",
    "open_app": "app",
    "open_gateway": "app",
}
"""Where each name stands; errors are all in one place."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'contracts.errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
