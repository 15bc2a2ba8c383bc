"""The result form and whether what it claims is so (SPEC E1, E4; faults R01, R02)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.loop.finish import Accepted, AskAgain, read_result, result_instructions, result_schema

DIRECTORY = "/w/shared/a1b2c3"
DELIVERED = {
    f"{DIRECTORY}/{name}": Pointer(f"{DIRECTORY}/{name}", "0" * 64, 3, "coder")
    for name in ("report.md", "jwt.ts", "empty.txt", "中文.md")
}


def verify(path: str) -> Pointer | None:
    """The delivered files, by absolute path or bare name."""
    if path.startswith("/etc/"):
        raise ToolFailed(f"{path} is outside what this run may see")
    return DELIVERED.get(path if path.startswith("/") else f"{DIRECTORY}/{path}")


def read(text: str, output_schema: dict[str, object] | None = None) -> Accepted | AskAgain:
    return read_result(text, verify, output_schema)


def accepted(text: str, output_schema: dict[str, object] | None = None) -> Accepted:
    result = read(text, output_schema)
    assert isinstance(result, Accepted), result
    return result


def refused(text: str, output_schema: dict[str, object] | None = None) -> str:
    result = read(text, output_schema)
    assert isinstance(result, AskAgain), result
    assert len(result.reason) < 3_000
    return result.reason


def form(pointers: object = None, summary: object = "done", status: object = "success") -> str:
    return json.dumps({"status": status, "summary_data": summary, "artifact_pointers": pointers})


FORM = form({"report": f"{DIRECTORY}/report.md"}, {"score": 7})


@pytest.mark.parametrize(
    "text",
    [
        FORM,
        f"  {FORM}\n",
        f"Done!\n```json\n{FORM}\n```\nAnything else?",
        f"The result is {FORM} and that is all.",
        f"~~~\n{FORM}\n~~~",
        FORM.replace('"', "'"),
        FORM[:-1] + ",}",
        f'{{"action": "finish", {FORM[1:]}',
        f'{{"action": "result", "result": {FORM}}}',
        f'{{"result": {FORM}}}',
        f"[{FORM}]",
        f"<think>{form()}</think>\n{FORM}",
        f"First I thought\n{form(None, 'draft', 'error')}\nbut now\n{FORM}",
        FORM.replace("success", "SUCCESS"),
        FORM.replace("success", "completed"),
        FORM.replace("status", "Status"),
    ],
)
def test_the_form_is_found_wherever_it_stands(text: str) -> None:
    result = accepted(text)
    assert result.status == "success"
    assert result.summary_data == {"score": 7}
    assert [pointer.path for pointer in result.pointers.values()] == [f"{DIRECTORY}/report.md"]
    assert result.text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "I wrote the report.",
        "```json\n{}\n```",
        '{"status": "success"}',
        '{"status":"success","summary_data":{"a":',
        '{"summary_data": {}, "artifact_pointers": {}}',
        "[]",
        "null",
        form(status="partial"),
        form(status=None),
        form(status=["success"]),
    ],
)
def test_a_reply_without_the_form_is_asked_again_with_the_form(text: str) -> None:
    """E1, R01 (b)"""
    assert "status" in refused(text)


@pytest.mark.parametrize("summary", [None, "", "  "])
def test_success_without_summary_data_is_refused(summary: object) -> None:
    """R01"""
    assert "summary_data" in refused(form({}, summary))
    assert accepted(form({}, summary, "error")).status == "error"


@pytest.mark.parametrize(
    "path",
    [
        "missing.md",
        DIRECTORY,
        f"{DIRECTORY}/../x",
        "/etc/passwd",
        "",
        7,
        True,
        {"path": "missing.md"},
        "x" * 50_000,
        "delivered: missing.md",
    ],
)
def test_a_pointer_that_was_never_delivered_is_refused_with_the_reason(path: object) -> None:
    """R02"""
    for pointers in ([path], {"report": path}, [{"name": "report", "path": path}]):
        assert "artifact_pointers" in refused(form(pointers, {"x": 1}))


def test_one_bad_pointer_among_good_ones_is_named() -> None:
    """R02"""
    reason = refused(form({"a": "report.md", "b": "gone.md", "c": "/etc/passwd"}))
    assert "'gone.md'" in reason
    assert "outside what this run may see" in reason
    assert "report.md'" not in reason


@pytest.mark.parametrize(
    ("pointers", "names"),
    [
        ({}, []),
        (None, []),
        ([], []),
        ("", []),
        ("report.md", ["report.md"]),
        (["report.md"], ["report.md"]),
        (["report.md", "report.md", f"{DIRECTORY}/report.md"], ["report.md"]),
        ({"a": "report.md", "b": f"{DIRECTORY}/report.md"}, ["a"]),
        ({"a": "report.md", "b": None}, ["a"]),
        ({"a": {"path": "report.md"}}, ["a"]),
        ({"name": "a", "path": "report.md"}, ["a"]),
        ([{"name": "a", "path": "report.md"}, {"path": "jwt.ts"}], ["a", "jwt.ts"]),
        ([{"name": "a", "path": "report.md"}, {"name": "a", "path": "jwt.ts"}], ["a", "a (2)"]),
        ([{"source": "jwt.ts"}], ["source"]),
        ({"a": "delivered: report.md"}, ["a"]),
        ({"空": "empty.txt", "中": "中文.md"}, ["空", "中"]),
    ],
)
def test_pointers_come_as_a_mapping_or_a_list_and_duplicates_collapse(
    pointers: object, names: list[str]
) -> None:
    """R02"""
    assert list(accepted(form(pointers)).pointers) == names


@pytest.mark.parametrize("pointers", [7, True])
def test_pointers_of_another_shape_are_refused(pointers: object) -> None:
    assert "artifact_pointers must be an object" in refused(form(pointers))


def test_very_many_pointers_are_refused_without_checking_them() -> None:
    asked: list[str] = []

    def count(path: str) -> Pointer | None:
        asked.append(path)
        return None

    result = read_result(form([f"{i}.md" for i in range(10_000)]), count, None)
    assert isinstance(result, AskAgain)
    assert asked == []


SCORE: dict[str, object] = {
    "type": "object",
    "properties": {"score": {"type": "integer"}, "issues": {"type": "array"}},
    "required": ["score"],
}


def test_summary_data_must_satisfy_the_tasks_own_schema() -> None:
    """E4"""
    assert accepted(form({}, {"score": 7}), SCORE).summary_data == {"score": 7}
    assert accepted(form({}, '{"score": 7}'), SCORE).summary_data == {"score": 7}
    reason = refused(form({}, {"score": "high", "issues": 3}), SCORE)
    assert "score" in reason
    assert "issues" in reason
    assert "'score' is a required property" in refused(form({}, {}), SCORE)
    assert accepted(form({}, {"why": "no file"}, "error"), SCORE).status == "error"


def test_the_schema_of_the_form_takes_the_tasks_own_shape() -> None:
    """E4"""
    schema = result_schema(SCORE)
    assert schema["properties"] == {
        "status": {"type": "string", "enum": ["success", "error"]},
        "summary_data": SCORE,
        "artifact_pointers": {"type": "object", "additionalProperties": {"type": "string"}},
    }


def test_the_instructions_show_the_form_and_the_schema() -> None:
    assert '"artifact_pointers"' in result_instructions(None)
    assert '"issues"' not in result_instructions(None)
    assert '"issues"' in result_instructions(SCORE)


def test_a_huge_reply_is_read_in_time() -> None:
    content = "x" * 2_000_000
    assert accepted(form({}, {"text": content})).summary_data == {"text": content}
    refused('{"status": ' * 100_000)
    refused("{" * 400_000)


@given(
    st.text(max_size=60) | st.lists(st.sampled_from([FORM, FORM[:30], "{", "}", "\n", '"', "x"])).map("".join)
)
def test_any_reply_is_accepted_or_asked_again(text: str) -> None:
    result = read(text)
    if isinstance(result, Accepted):
        assert result.summary_data is not None
        assert all(pointer in DELIVERED.values() for pointer in result.pointers.values())
