"""The API's description: it is current, it is true, and a fuzzer that believes it finds nothing."""

import asyncio
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator

from gateway.api_client import Got, Scene, at_the_api
from xclaw.contracts.channels import Failed
from xclaw.contracts.events import Address, Entry
from xclaw.gateway.channels.api_documents import FRAMES_FILE, OPENAPI_FILE, all_routes, file_text
from xclaw.gateway.channels.api_errors import STATUS
from xclaw.gateway.channels.api_table import ROUTES
from xclaw.gateway.frames import event_frame, frame_of
from xclaw.gateway.openapi import frames_schema, openapi_document
from xclaw.gateway.openapi_page import reference_page
from xclaw.gateway.wire import ClientFrame, Frame, Hello, Say, ServerFrame, Watch, encode
from xclaw.testing.fake_replies import Text
from xclaw.testing.sample_events import sample_events

DOCS = Path(__file__).parents[2] / "docs"
HOW = "run: python -m xclaw.gateway.channels.api_documents docs"
FUZZ_CONFIG = """\
# What only the gateway knows is refused with 400: an agent, a model or a session's name that cannot be.
[[operations]]
include-operation-id = ["say", "start_run"]
checks.positive_data_acceptance.enabled = false

# A session can be watched before anything was said in it, so also after it was deleted.
[[operations]]
include-operation-id = ["session_events"]
checks.use_after_free.enabled = false
request-timeout = 0.5  # so long is a stream read

[[operations]]
include-operation-id = ["run_events"]
request-timeout = 0.5
"""


def test_the_copies_in_the_docs_are_current() -> None:
    assert (DOCS / OPENAPI_FILE).read_text(encoding="utf-8") == file_text(openapi_document(all_routes())), HOW
    assert (DOCS / FRAMES_FILE).read_text(encoding="utf-8") == file_text(frames_schema()), HOW


def test_every_schema_is_one() -> None:
    document = cast("dict[str, Any]", openapi_document(all_routes()))
    schemas = document["components"]["schemas"]
    for schema in (*schemas.values(), frames_schema()):
        Draft202012Validator.check_schema(schema)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert named == set(schemas)


def test_operations_have_names_of_their_own() -> None:
    names = [route.name for route in all_routes()]
    assert len(set(names)) == len(names)


def test_frames_fit_their_schema() -> None:
    validator = cast("Any", Draft202012Validator(frames_schema()))
    frames: list[Frame] = [
        Say(session="s", text="t", ref="1"),
        Watch(session="s", after=3),
        Hello(v=1, server="0", user="owner", scopes=("chat",), max_message_bytes=1),
        cast("Frame", frame_of(Failed("m", "s", "refused", "no"))),
        *(
            event_frame(Entry(Address("r", "r", "", "s"), 1, 0.5, event, 7), "m", "s", complete=True)
            for event in sample_events()
        ),
    ]
    for frame in frames:
        validator.validate(json.loads(encode(frame)))
    for wrong in (
        {},
        {"type": "shout"},
        {"type": "message", "session": "s"},
        {"type": "watch", "session": 7},
    ):
        assert not validator.is_valid(wrong)
    tags = msgspec.json.schema(ClientFrame)["discriminator"]["mapping"]
    assert {"watch", "message", "cancel", "answer", "ping", "unwatch"} == set(tags)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_the_page_runs_nothing_and_names_everything() -> None:
    page = reference_page(openapi_document(all_routes()))
    tags = _Tags()
    tags.feed(page)
    assert not tags.tags & {"script", "iframe", "object", "embed", "form", "img", "base"}
    assert not any(name.startswith("on") or name == "style" for name in tags.attributes)
    for route in all_routes():
        assert f"id='{route.name}'" in page


def test_the_descriptions_are_open_to_any_token_and_to_nobody_without(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        bob = scene.as_user("bob")
        served = await bob.get("!/openapi.json")
        assert served.json == json.loads((DOCS / OPENAPI_FILE).read_text())
        assert (await bob.get("!/schema.json")).json == json.loads((DOCS / FRAMES_FILE).read_text())
        page = await bob.get("!/docs")
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "script-src" not in page.headers["Content-Security-Policy"]
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none';")
        for path in ("!/openapi.json", "!/schema.json", "!/docs"):
            assert (await bob.get(path, Authorization="")).status == 401
            assert (await bob.call("POST", path, {})).error[0] == 405

    at_the_api(tmp_path, body)


@pytest.mark.timeout(180)
def test_a_fuzzer_that_believes_the_description_finds_nothing(tmp_path: Path) -> None:
    """Schemathesis on every route, with a token: no 5xx, every answer as it is described, refusals where
    the description says so."""

    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda _: Text("fine"))
        (tmp_path / "fuzz.toml").write_text(FUZZ_CONFIG)
        got = await _fuzz(scene, tmp_path)
        assert got.status == 0, got.body.decode()[-6_000:]
        assert b"Tested: " in got.body

    at_the_api(tmp_path, body, within_s=170)


async def _fuzz(scene: Scene, home: Path) -> Got:
    """How Schemathesis ended, and what it said."""
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        str(home / "fuzz.toml"),
        "--no-color",
    ]
    options = {"--seed": "7", "-n": "6", "--request-timeout": "20", "--warnings": "off"}
    process = await asyncio.create_subprocess_exec(
        *command,
        "run",
        f"{scene.owner.url}/openapi.json",
        "-H",
        f"Authorization: Bearer {scene.owner.token}",
        "--no-shrink",
        *(part for option in options.items() for part in option),
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Got(process.returncode or 0, {}, output)


def test_the_protocol_page_names_every_route_frame_and_code() -> None:
    page = (DOCS / "gateway.md").read_text(encoding="utf-8")
    for route in ROUTES:
        assert f"| `{route.method}` | `{route.path}` | {route.summary} | `{route.scope}` |" in page
    sent = msgspec.json.schema(ClientFrame)["discriminator"]["mapping"]
    got = msgspec.json.schema(ServerFrame)["discriminator"]["mapping"]
    for word in (*sent, *got, *STATUS):
        assert f"`{word}`" in page, word
