"""`xclaw trace --otlp`: what the journal has, sent to a receiver."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from xclaw_command import HELLO, Ended, Xclaw

from xclaw.testing.otlp_receiver import Receiver, receiving


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Xclaw:
    """A home in which one piece of work was done."""
    xclaw = Xclaw(tmp_path_factory.mktemp("worked"))
    assert xclaw("run", "write hello", "-s", "mine", "-m", xclaw.script(HELLO)).code == 0
    return xclaw


def with_receiver(command: Callable[[str], Ended], status: int = 200) -> tuple[Ended, Receiver]:
    """Run `command` with the address of a receiver."""

    async def main() -> tuple[Ended, Receiver]:
        async with receiving(status) as receiver:
            return await asyncio.to_thread(command, receiver.url), receiver

    return asyncio.run(main())


@pytest.mark.parametrize(
    "arguments", [("last", "--otlp", "URL"), ("--otlp", "URL"), ("-s", "mine", "--otlp", "URL")]
)
def test_an_old_run_is_exported_to_the_address_that_is_named(
    worked: Xclaw, arguments: tuple[str, ...]
) -> None:
    """K5."""

    def command(url: str) -> Ended:
        return worked("trace", *(argument.replace("URL", url) for argument in arguments))

    ended, receiver = with_receiver(command)
    assert (ended.code, ended.err) == (0, "")
    assert "8 spans of r" in ended.out
    assert len(receiver.spans) == 8
    assert not any(b"write hello" in body for body in receiver.bodies)


def test_prompts_are_exported_when_they_are_asked_for(worked: Xclaw) -> None:
    _, receiver = with_receiver(lambda url: worked("trace", "--otlp", "--prompts", url))
    assert receiver.one("invoke_agent orchestrator")["input.value"] == "write hello"


def test_the_environment_names_the_address_too_and_a_run_exports_itself(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    model = xclaw.script(HELLO)
    ran, at_once = with_receiver(lambda url: xclaw("run", "hi", "-m", model, OTEL_EXPORTER_OTLP_ENDPOINT=url))
    again, later = with_receiver(lambda url: xclaw("trace", "--otlp", OTEL_EXPORTER_OTLP_ENDPOINT=url))
    assert (ran.code, again.code) == (0, 0)
    assert {span.span_id for span in at_once.spans} == {span.span_id for span in later.spans}
    assert len(at_once.spans) == 8


def test_a_run_whose_receiver_is_down_is_as_good_as_any_other(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    model = xclaw.script(HELLO)
    ran = xclaw("run", "hi", "-q", "-m", model, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (ran.code, ran.out) == (0, "All done: hello.py is written.\n")
    assert ran.err.count("traces are not exported") == 1


def test_a_refusal_is_a_failure_with_its_reason(worked: Xclaw) -> None:
    ended, _ = with_receiver(lambda url: worked("trace", "--otlp", url), status=401)
    assert (ended.code, ended.out) == (1, "")
    assert "401" in ended.err


def test_without_an_address_the_user_is_told_how_to_name_one(worked: Xclaw) -> None:
    ended = worked("trace", "--otlp")
    assert ended.code == 2
    assert "xclaw trace RUN --otlp http://localhost:4318" in ended.err


def test_an_address_without_otlp_is_an_error(worked: Xclaw) -> None:
    ended = worked("trace", "last", "http://localhost:4318")
    assert ended.code == 2
    assert "--otlp" in ended.err
