"""What users and our own tests share: models without a network, a fake provider, conformance suites.

The suites are modules of their own (`xclaw.testing.model_conformance` and so on). Names are imported
on first use, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xclaw.testing.fake_provider import FakeProvider, RecordedRequest
    from xclaw.testing.fake_replies import (
        DONE,
        Calls,
        Cut,
        Hang,
        Pause,
        Raw,
        Reply,
        Status,
        Text,
        Until,
        delta,
        sse,
        usage_chunk,
    )
    from xclaw.testing.fake_rules import FakeRules
    from xclaw.testing.recording_sink import RecordingSink
    from xclaw.testing.script_files import ScriptedReply
    from xclaw.testing.scripted_model import FunctionModel, ScriptedModel

__all__ = [
    "DONE",
    "Calls",
    "Cut",
    "FakeProvider",
    "FakeRules",
    "FunctionModel",
    "Hang",
    "Pause",
    "Raw",
    "RecordedRequest",
    "RecordingSink",
    "Reply",
    "ScriptedModel",
    "ScriptedReply",
    "Status",
    "Text",
    "Until",
    "delta",
    "sse",
    "usage_chunk",
]

_MODULES = {
    "FakeProvider": "fake_provider",
    "FakeRules": "fake_rules",
    "FunctionModel": "scripted_model",
    "RecordedRequest": "fake_provider",
    "RecordingSink": "recording_sink",
    "ScriptedModel": "scripted_model",
    "ScriptedReply": "script_files",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'fake_replies')}")
    return getattr(module, name)
