"""Export to a real receiver: in the background of runs, on demand, and when it does not work."""

import asyncio
import logging
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from recorded_runs import answered, ended, entries_of, started, turn

from xclaw.app import App, open_app
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.usage import Usage
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, load_settings
from xclaw.store.journal import SqliteJournal
from xclaw.testing.otlp_receiver import Received, Receiver, receiving
from xclaw.traces.otel_export import BackgroundExport, Exporter, parse_headers, shown_url, traces_url
from xclaw.traces.settings import TracesSettings

SECRET = "the launch code is 4711"
SCRIPT = f"""
- agent: orchestrator
  replies:
    - calls: [{{name: delegate, arguments: {{agent: coder, task: "Write hello.py. {SECRET}"}}}}]
    - text: "All done. {SECRET}"
- agent: coder
  replies:
    - calls: [{{name: deliver, arguments: {{path: "{{{{delivery_dir}}}}/hello.py", content: "{SECRET}"}}}}]
    - text: '{{"status": "success", "summary_data": {{"lines": 1}},
             "artifact_pointers": {{"hello": "{{{{pointer:hello.py}}}}"}}}}'
"""


def run_with(home: Path, env: Mapping[str, str], *texts: str) -> list[str]:
    """Run each text to its end in one app; answers the root ids."""

    async def main() -> list[str]:
        (home / "script.yaml").write_text(SCRIPT, encoding="utf-8")
        settings = load_settings(
            cwd=home,
            env={"XCLAW_HOME": str(home), "HOME": str(home), **env},
            overrides=Overrides(models=(f"script:{home / 'script.yaml'}",)),
        )
        async with open_app(settings) as app:
            return [await finished(app, text) for text in texts]

    return asyncio.run(main())


async def finished(app: App, text: str) -> str:
    handle = await app.runs.start(RunRequest(text, f"s-{text}"))
    assert (await handle.result()).succeeded
    return handle.root_id


def exported(home: Path, *texts: str, **env: str) -> Receiver:
    """What a receiver got from runs of an app, all that within ten seconds."""

    async def main() -> Receiver:
        async with asyncio.timeout(10), receiving() as receiver:
            await asyncio.to_thread(
                run_with, home, {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **env}, *texts
            )
            return receiver

    return asyncio.run(main())


def small_tree() -> list[Entry]:
    return entries_of([started("coder"), turn(1), answered(1, Usage(5, 5)), ended()])


async def read_small_tree(root_id: str) -> list[Entry]:
    return small_tree()


def parent_of(span: Received, receiver: Receiver) -> str:
    return {each.span_id: each.name for each in receiver.spans}.get(span.parent_id, "")


def test_every_root_that_ends_is_exported_with_its_whole_tree(tmp_path: Path) -> None:
    """K5."""
    receiver = exported(tmp_path, "go")
    root, child = receiver.one("invoke_agent orchestrator"), receiver.one("invoke_agent coder")
    delegate, deliver = receiver.one("execute_tool delegate"), receiver.one("execute_tool deliver")
    chats = [span for span in receiver.spans if span["gen_ai.operation.name"] == "chat"]
    assert len(receiver.spans) == 8
    assert len(chats) == 4
    assert {span.trace_id for span in receiver.spans} == {root.trace_id}
    assert root.parent_id == ""
    assert parent_of(child, receiver) == "execute_tool delegate"
    assert (parent_of(delegate, receiver), parent_of(deliver, receiver)) == (root.name, child.name)
    assert {parent_of(chat, receiver) for chat in chats} == {root.name, child.name}
    assert all(root.start <= span.start <= span.end <= root.end for span in receiver.spans)
    assert root["gen_ai.conversation.id"] == "s-go"
    assert str(child["gen_ai.conversation.id"]).startswith("s-go:coder:")
    assert child["session.id"] == "s-go"
    assert {chat["gen_ai.provider.name"] for chat in chats} == {"script"}
    assert {chat["gen_ai.response.finish_reasons"] for chat in chats} == {("tool_calls",), ("stop",)}
    assert {chat.kind for chat in chats} == {3}
    assert root.kind == 1
    assert receiver.services == {"xclaw"}


def test_the_tokens_of_all_spans_sum_to_those_of_the_root(tmp_path: Path) -> None:
    """U01: no double counting."""
    receiver = exported(tmp_path, "go")
    root = receiver.one("invoke_agent orchestrator")
    for name in ("input_tokens", "output_tokens"):
        total = sum(span.number(f"gen_ai.usage.{name}") for span in receiver.spans)
        assert total == root.number(f"gen_ai.aggregated_usage.{name}")
        assert total > 0


def test_nothing_that_was_said_leaves_unless_it_is_asked_for(tmp_path: Path) -> None:
    receiver = exported(tmp_path, "go")
    assert not any(SECRET.encode() in body for body in receiver.bodies)
    with_content = exported(tmp_path, "go", XCLAW_TRACE_CONTENT="1")
    root = with_content.one("invoke_agent orchestrator")
    assert (root["input.value"], root["output.value"]) == ("go", f"All done. {SECRET}")
    assert SECRET in str(with_content.one("execute_tool deliver")["gen_ai.tool.call.arguments"])


def test_each_root_is_a_trace_of_its_own(tmp_path: Path) -> None:
    receiver = exported(tmp_path, "one", "two")
    roots = receiver.named("invoke_agent orchestrator")
    assert {root["session.id"] for root in roots} == {"s-one", "s-two"}
    assert len({span.trace_id for span in receiver.spans}) == 2


def test_headers_and_the_trace_context_of_the_environment_are_honoured(tmp_path: Path) -> None:
    receiver = exported(
        tmp_path,
        "go",
        OTEL_EXPORTER_OTLP_HEADERS="Authorization=Basic%20abc,x-langfuse-ingestion-version=4",
        TRACEPARENT="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    assert receiver.headers[0]["Authorization"] == "Basic abc"
    assert receiver.headers[0]["x-langfuse-ingestion-version"] == "4"
    root = receiver.one("invoke_agent orchestrator")
    assert (root.trace_id, root.parent_id) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


def test_a_run_of_a_dead_process_is_exported_once_somebody_ends_it(tmp_path: Path) -> None:
    async def main() -> Receiver:
        async with asyncio.timeout(10), receiving() as receiver:
            env = {"XCLAW_HOME": str(tmp_path), "HOME": str(tmp_path)}
            settings = load_settings(cwd=tmp_path, env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
            Path(settings.workspace.root).mkdir(parents=True)
            journal = await SqliteJournal.open(settings.store)
            await journal.register_owner("dead", 1, "")
            journal.append(entries_of([started("coder"), turn(1)]), lambda entries, failure: None)
            await journal.close()
            async with open_app(settings) as app:
                await app.cancel("root", "not needed any more")
            return receiver

    run = asyncio.run(main()).one("invoke_agent coder")
    assert (run["xclaw.outcome"], run["error.type"], run.failed) == ("cancelled", "cancelled", True)


def test_a_receiver_that_refuses_disturbs_no_run_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with asyncio.timeout(10), receiving(status=401) as receiver:
            env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url.replace("//", "//me:hunter2@")}
            await asyncio.to_thread(run_with, tmp_path, env, "one", "two")
            assert receiver.bodies

    asyncio.run(main())
    (record,) = caplog.records
    assert "traces are not exported to http://127.0.0.1" in record.getMessage()
    assert "401" in record.getMessage()
    assert "hunter2" not in record.getMessage()


@pytest.mark.parametrize("endpoint", ["localhost:4318", "http://", "ftp://x", "http://[", "no address"])
def test_an_endpoint_that_is_no_address_disturbs_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, endpoint: str
) -> None:
    run_with(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, "go")
    (record,) = caplog.records
    assert "should be a URL such as http://localhost:4318" in record.getMessage()


def test_without_an_endpoint_nothing_is_exported_and_no_vendor_is_imported(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name == "xclaw.traces.otel_sdk"}
    run_with(tmp_path, {}, "go")
    assert {name for name in sys.modules if name == "xclaw.traces.otel_sdk"} == before


def test_the_end_waits_for_exports_but_no_longer_than_its_bound(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with asyncio.timeout(10), receiving() as receiver:
            receiver.hold = asyncio.Event()
            export = BackgroundExport(TracesSettings(receiver.url, flush_timeout_s=0.05), read_small_tree)
            export.root_ended("root")
            await receiver.arrived.wait()
            await export.close()
            assert receiver.spans == []

    asyncio.run(main())
    assert ["gave up after 0.05 s" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_is_down_does_not_keep_the_process(status: int) -> None:
    """The exporter would try again for ten seconds; at the end there is no second try."""

    async def main() -> None:
        async with asyncio.timeout(4), receiving(status) as receiver:
            export = BackgroundExport(TracesSettings(receiver.url, flush_timeout_s=60), read_small_tree)
            export.root_ended("root")
            await receiver.arrived.wait()
            await export.close()
            assert len(receiver.bodies) == 1

    asyncio.run(main())


def test_a_journal_that_cannot_be_read_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(root_id: str) -> list[Entry]:
        raise OSError("disk full")

    async def main() -> None:
        export = BackgroundExport(TracesSettings("http://127.0.0.1:9"), broken)
        export.root_ended("root")
        await export.close()

    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "traces are not exported to http://127.0.0.1:9: disk full"
    ]


def test_a_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "xclaw.traces.otel_sdk", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(UsageError, match=r"pip install 'xclaw\[otel\]'"):
        Exporter(TracesSettings("http://localhost:4318"))


def test_a_receiver_that_is_not_there_is_a_failure_with_its_reason() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    exporter = Exporter(TracesSettings(endpoint))
    exporter.hurry()
    count, failure = exporter.export(small_tree())
    assert count == 2
    assert "refused" in failure


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://host/api/public/otel/", "https://host/api/public/otel/v1/traces"),
        ("http://host:4318/v1/traces", "http://host:4318/v1/traces"),
    ],
)
def test_the_path_for_traces_is_added_unless_it_is_there(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url


def test_headers_are_read_as_opentelemetry_writes_them() -> None:
    assert parse_headers("") == {}
    assert parse_headers("A=1, b = x%2Cy%3D ,") == {"a": "1", "b": "x,y="}


@pytest.mark.parametrize("text", ["hunter2", "a b=hunter2", "=hunter2", "a=hunter2%0d%0ax: y", "a=hunter2é"])
def test_a_wrong_header_is_an_error_that_does_not_show_it(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_headers(text)
    assert "hunter2" not in str(error.value)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_url("https://me:pa/ss@host:1/x?token=t") == "https://host:1/x"
