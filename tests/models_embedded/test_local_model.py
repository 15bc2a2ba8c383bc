"""The embedded model through the `Model` contract."""

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from carrier import CHUNKS, settings_in, tiny_weights

from xclaw.contracts.errors import ModelError, ModelRejected
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import Attempt, ModelRequest, ToolSpec
from xclaw.models.embedded.model import LocalModel

pytestmark = pytest.mark.usefixtures("fake_llama")


class Sink:
    def __init__(self) -> None:
        self.text = ""

    def on_text(self, text: str) -> None:
        self.text += text

    def on_attempt_failed(self, attempt: Attempt) -> None:
        raise AssertionError("a single model reports no attempts")


def local(tmp_path: Path, **changes: object) -> LocalModel:
    weights = tiny_weights(tmp_path / "wheels")
    (tmp_path / "own.gguf").write_bytes(b"".join(CHUNKS))
    settings = settings_in(tmp_path, **{"model_path": str(tmp_path / "own.gguf")} | changes)
    return LocalModel(settings, weights=weights)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(limited())


def ask(text: str, **changes: object) -> ModelRequest:
    return ModelRequest("Be brief.", [UserMessage(text)], **changes)  # pyright: ignore[reportArgumentType]  tests name fields


def bodies(tmp_path: Path) -> list[dict[str, object]]:
    """The requests that the server has seen."""
    [file] = (tmp_path / "cache" / "models").glob("server-*.json")
    address = json.loads(file.read_text())
    request = urllib.request.Request(address["url"], headers={"Authorization": f"Bearer {address['key']}"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def test_its_profile_says_what_it_is(tmp_path: Path) -> None:
    model = local(tmp_path)
    profile = model.profile
    assert model.name == "local:tiny"
    assert (profile.native_tools, profile.structured_output, profile.few_shots) == (False, "alone", True)
    assert (profile.context_tokens, profile.worker_timeout_s) == (8192, 600.0)
    assert not (tmp_path / "cache").exists(), "making it does nothing"


def test_it_answers_free_of_charge_and_never_sends_tools(tmp_path: Path) -> None:
    async def main() -> None:
        model, sink = local(tmp_path, max_output_tokens=500), Sink()
        schema: dict[str, object] = {"type": "object"}
        tool = ToolSpec("deliver", "", {"type": "object"})
        reply = await model.reply(
            ask("hello", tools=(tool,), output_schema=schema, max_output_tokens=9_000), sink
        )
        assert (reply.message.text, sink.text) == ("hello", "hello")
        assert (reply.cost_usd, reply.model, reply.finish) == (0.0, "local:tiny", "stop")
        assert reply.usage.total_tokens == 7
        [body] = await asyncio.to_thread(bodies, tmp_path)
        assert "tools" not in body
        assert (body["temperature"], body["max_tokens"]) == (0.0, 500)
        assert "response_format" in body
        await model.close()

    run(main)


def test_a_crash_costs_one_call(tmp_path: Path) -> None:
    async def main() -> None:
        model = local(tmp_path)
        with pytest.raises(ModelError) as caught:
            await model.reply(ask("crash"), Sink())
        assert not isinstance(caught.value, ModelRejected), "another try may do better"
        assert (await model.reply(ask("again"), Sink())).message.text == "again"
        await model.close()

    run(main)


def test_calls_take_turns(tmp_path: Path) -> None:
    async def main() -> None:
        model = local(tmp_path)
        async with asyncio.TaskGroup() as group:
            replies = [group.create_task(model.reply(ask(f"call {n}"), Sink())) for n in range(5)]
        assert [task.result().message.text for task in replies] == [f"call {n}" for n in range(5)]
        assert model.queue.waiting == 0
        await model.close()

    run(main)


def test_what_the_user_must_put_right_is_a_rejection_so_that_a_chain_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        model = local(tmp_path, model_path=None)
        with pytest.raises(ModelRejected, match=r"local:tiny: .*pip install 'xclaw\[local\]'"):
            await model.reply(ask("hello"), Sink())
        assert not list((tmp_path / "cache").rglob("*.log")), "no server was started"
        await model.close()

    run(main)


def test_closing_twice_and_calling_after_it_work(tmp_path: Path) -> None:
    async def main() -> None:
        model = local(tmp_path)
        await model.close()
        assert (await model.reply(ask("hello"), Sink())).message.text == "hello"
        await model.close()
        assert (await model.reply(ask("hello again"), Sink())).message.text == "hello again"
        await model.close()
        await model.close()

    run(main)
