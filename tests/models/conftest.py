"""Leaves out the tests of wires whose package is not installed, and says so."""

from importlib.util import find_spec

HAS_PYDANTIC_AI = find_spec("pydantic_ai") is not None
collect_ignore = [] if HAS_PYDANTIC_AI else ["test_pydantic_ai.py"]


def pytest_report_header() -> str:
    if HAS_PYDANTIC_AI:
        return "models/pydantic_ai: tested"
    return "models/pydantic_ai: not tested, pydantic-ai is not installed (pip install 'xclaw[providers]')"
