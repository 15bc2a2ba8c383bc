"""Real clients of the OpenAI wire against a gateway on a real socket."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import FunctionToolParam, ResponseInputParam
from pydantic import BaseModel

from gateway.openai_scene import Json, Scene, at_the_wire
from xclaw.testing.fake_replies import Calls, Raw, Reply, Status, Text, Until, delta

LONG = "This is a rather long answer, sentence after sentence. " * 12
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
PARAMETERS: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}}
ADD: ChatCompletionToolParam = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}
ADD_ITEM: FunctionToolParam = {"type": "function", "name": "add", "parameters": PARAMETERS, "strict": False}
DOCS = Path(__file__).parents[2] / "docs" / "openai.md"


class Person(BaseModel):
    name: str
    age: int


def test_openai_python_talks_with_and_without_streaming(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(*[Calls(("c", "list_dir", "{}"), text="Hm."), Text(LONG, chunk=11)] * 3)
        async with scene.client() as client:
            assert "xclaw/coder" in [model.id async for model in client.models.list()]
            assert (await client.models.retrieve("xclaw/coder")).owned_by == "xclaw"
            whole = await client.chat.completions.create(model="xclaw/coder", messages=HI)
            assert whole.choices[0].message.content == LONG
            assert whole.usage
            assert whole.usage.total_tokens == 24
            text, usage = "", 0
            async for chunk in await client.chat.completions.create(
                model="xclaw/coder", messages=HI, stream=True, stream_options={"include_usage": True}
            ):
                text += chunk.choices[0].delta.content or "" if chunk.choices else ""
                usage = chunk.usage.total_tokens if chunk.usage else usage
            assert (text, usage) == (LONG, 24)
            async with client.chat.completions.stream(model="xclaw/coder", messages=HI) as stream:
                final = await stream.get_final_completion()
            assert final.choices[0].message.content == LONG
            assert final.choices[0].finish_reason == "stop"

    at_the_wire(tmp_path, body)


def test_openai_python_runs_its_tools_and_goes_on(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        call = Calls(("c", "add", '{"a": 1}'), text="I add.")
        scene.provider.queue(call, Text("4"), call, Text("4"))
        async with scene.client() as client:
            for streamed in (False, True):
                if streamed:
                    async with client.chat.completions.stream(
                        model="xclaw", messages=HI, tools=[ADD]
                    ) as stream:
                        choice = (await stream.get_final_completion()).choices[0]
                else:
                    got = await client.chat.completions.create(model="xclaw", messages=HI, tools=[ADD])
                    choice = got.choices[0]
                assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I add.")
                assert choice.message.tool_calls
                said = cast("ChatCompletionMessageParam", choice.message.model_dump(exclude_unset=True))
                result: ChatCompletionMessageParam = {
                    "role": "tool",
                    "tool_call_id": choice.message.tool_calls[0].id,
                    "content": "4",
                }
                last = await client.chat.completions.create(
                    model="xclaw", messages=[*HI, said, result], tools=[ADD]
                )
                assert last.choices[0].message.content == "4"

    at_the_wire(tmp_path, body)


def test_openai_python_parses_answers_into_models(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        ann = Text('```json\n{"name": "Ann", "age": 3}\n```')
        scene.provider.queue(ann, ann)
        async with scene.client() as client:
            got = await client.chat.completions.parse(
                model="xclaw/coder", messages=HI, response_format=Person
            )
            assert got.choices[0].message.parsed == Person(name="Ann", age=3)
            told = await client.responses.parse(model="xclaw/coder", input="hi", text_format=Person)
            assert told.output_parsed == Person(name="Ann", age=3)

    at_the_wire(tmp_path, body)


def test_openai_python_uses_responses(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(*[Calls(("c", "list_dir", "{}"), text="Hm."), Text(LONG, chunk=11)] * 2)
        scene.provider.queue(Calls(("c", "add", '{"a": 1}')), Text("4"))
        async with scene.client() as client:
            whole = await client.responses.create(model="xclaw/coder", input="hi", store=False)
            assert (whole.output_text, whole.status) == (LONG, "completed")
            async with client.responses.stream(model="xclaw/coder", input="hi") as stream:
                texts = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                final = await stream.get_final_response()
            assert "".join(texts) == final.output_text == LONG
            asked = await client.responses.create(model="xclaw/coder", input="1+3?", tools=[ADD_ITEM])
            (call,) = [item for item in asked.output if item.type == "function_call"]
            given = cast(
                "ResponseInputParam",
                [
                    {"role": "user", "content": "1+3?"},
                    *(item.model_dump() for item in asked.output),
                    {"type": "function_call_output", "call_id": call.call_id, "output": "4"},
                ],
            )
            last = await client.responses.create(model="xclaw/coder", input=given, tools=[ADD_ITEM])
            assert last.output_text == "4"

    at_the_wire(tmp_path, body)


def test_openai_python_survives_a_silent_model(tmp_path: Path) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        scene.provider.queue(Raw(Until(goes_on), delta("hi"), delta(finish="stop"), b"data: [DONE]\n\n"))
        async with scene.client() as client:
            stream = await client.chat.completions.create(model="xclaw/coder", messages=HI, stream=True)
            chunks = [await anext(stream)]
            goes_on.set()
            chunks += [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "hi"

    at_the_wire(tmp_path, body, keepalive_s=0.02)


def test_openai_python_raises_its_own_errors_and_pays_once(tmp_path: Path) -> None:
    """A client that repeats failed requests does not repeat a run that was paid for."""

    async def body(scene: Scene) -> None:
        async with scene.client(max_retries=2) as client:
            with pytest.raises(openai.NotFoundError, match="gpt-4o") as missing:
                await client.chat.completions.create(model="gpt-4o", messages=HI)
            assert missing.value.code == "model_not_found"
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model="xclaw", messages=[])
            scene.provider.queue(Status(400), Calls(("c", "list_dir", "{}")), Status(400))
            with pytest.raises(openai.InternalServerError, match="ended without an answer"):
                await client.chat.completions.create(model="xclaw/coder", messages=HI)
            assert len(scene.provider.requests) == 1
            with pytest.raises(openai.APIError, match="ended without an answer"):
                async for _ in await client.chat.completions.create(
                    model="xclaw/coder", messages=HI, stream=True
                ):
                    pass
        async with scene.client(token="xc_owner_" + "x" * 30) as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.chat.completions.create(model="xclaw", messages=HI)

    at_the_wire(tmp_path, body)


def test_the_synchronous_client_talks_too(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("one"), Text("two"), Text("three"))

        def talk() -> list[str | None]:
            with OpenAI(base_url=scene.base, api_key=scene.token, max_retries=0) as client:
                whole = client.chat.completions.create(model="xclaw/coder", messages=HI)
                stream = client.chat.completions.create(model="xclaw/coder", messages=HI, stream=True)
                text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
                told = client.responses.create(model="xclaw/coder", input="hi")
                return [whole.choices[0].message.content, text, told.output_text]

        assert await asyncio.to_thread(talk) == ["one", "two", "three"]

    at_the_wire(tmp_path, body)


async def run(program: str, *arguments: str, **env: str) -> tuple[int, str]:
    """A program of this environment, to its end: exit code and output."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name(program)),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **env},
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, output.decode()


def test_llm_talks_and_remembers(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda body: Text(f"{len(cast('list[Json]', body['messages']))} messages"))
        home = tmp_path / "llm"
        home.mkdir()
        model = "- model_id: xclaw\n  model_name: xclaw/coder\n  supports_tools: true\n  supports_schema: true\n  api_key_name: xclaw\n"
        (home / "extra-openai-models.yaml").write_text(f"{model}  api_base: {scene.base}\n", encoding="utf-8")
        texts: list[str] = []
        for options in ([], ["--no-stream"], ["-c"]):
            arguments = ["-m", "xclaw", "--key", scene.token, *options, "how many?"]
            code, output = await run("llm", *arguments, LLM_USER_PATH=str(home))
            assert code == 0, output
            texts.append(output.strip())
        counts = [int(text.split()[0]) for text in texts]
        assert counts[0] == counts[1] == counts[2] - 2

    at_the_wire(tmp_path, body, within_s=60)


def _obeying(body: Json) -> Reply:
    """A model that calls what it must."""
    told = str(body["messages"][0]["content"])
    must = re.search(r"You must answer by calling the tool (\w+)", told)
    return Calls(("c", must[1], '{"location": "San Francisco"}')) if must else Text("One two three", chunk=3)


@pytest.mark.parametrize(
    ("suite", "failing"), [("openai-chat", {"Image Input"}), ("open-responses", {"Image Input"})]
)
def test_llm_comply_finds_what_the_docs_say(tmp_path: Path, suite: str, failing: set[str]) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.answer_with(cast("Callable[[dict[str, object]], Reply]", _obeying))
        arguments = ["--format", suite, "-u", scene.base, "-k", scene.token, "-m", "xclaw/coder", "--json"]
        _, output = await run("llm-comply", *arguments)
        found = json.loads(output[output.index("{") :])
        assert {each["name"] for each in found["results"] if each["status"] == "failed"} == failing
        summary = found["summary"]
        row = f"| `{suite}` | {summary['passed']} of {summary['total']} |"
        assert row in DOCS.read_text(encoding="utf-8")

    at_the_wire(tmp_path, body, within_s=60)
