"""Which part of a model's reply is the command (SPEC C4, fault class 01)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.messages import ToolCall
from xclaw.loop.actions import Actions, Answer, Malformed, parse_reply, render_calls
from xclaw.loop.arguments import resolve_name

TOOLS = ("list_dir", "view_file", "deliver", "shell", "delegate")


def calls_in(text: str) -> list[tuple[str, object]]:
    """The calls of a reply that must be understood, arguments decoded."""
    reading = parse_reply(text, TOOLS)
    assert isinstance(reading, Actions), reading
    return [(name, json.loads(arguments)) for name, arguments in reading.calls]


@pytest.mark.parametrize("opening", ["```json", "```JSON", "```", "~~~", "~~~~json", "``` json", "```json5"])
def test_a_fenced_action_with_a_raw_newline_in_a_string_is_read(opening: str) -> None:
    """P06"""
    mark = opening[:4] if opening.startswith("~~~~") else opening[:3]
    text = f'Sure:\n{opening}\n{{"action": "deliver", "args": {{"summary": "line1\nline2"}}}}\n{mark}\n'
    assert calls_in(text) == [("deliver", {"summary": "line1\nline2"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "view_file", "path": "a b.txt"}',
        "{'action': 'view_file', 'path': 'a b.txt'}",
        '{"action": "view_file", "path": "a b.txt",}',
        '{"action": "view_file", // which file\n "path": "a b.txt" /* relative */}',
        '{"action": "view_file", # which file\n "path": "a b.txt"}',
        '{action: "view_file", path: "a b.txt"}',
        "{“action”: “view_file”, “path”: “a b.txt”}",
        '{"action"："view_file"，"path"："a b.txt"}',
        '{"path": "a b.txt", "action": "view_file"}',
        '\ufeff{"action": "view_file", "path": "a b.txt"}\r\n',
        '{"action": "view_file", "path": "a b.txt"}}',
        '{"action": "view_file", "args": {"path": "a b.txt"}',
        '{"action": "View_File", "path": "a b.txt"}',
        '{"action": "`view_file`", "path": "a b.txt"}',
        '{"action": "functions.view_file", "path": "a b.txt"}',
        '{"action": "view_file()", "path": "a b.txt"}',
        '{"action": "view-file", "path": "a b.txt"}',
        '{"Action": "view_file", "Args": {"path": "a b.txt"}}',
        '{"action": "view_file", "arguments": {"path": "a b.txt"}}',
        '{"action": "view_file", "arguments": "{\\"path\\": \\"a b.txt\\"}"}',
        '{"action": "view_file", "action_input": {"path": "a b.txt"}}',
        '{"action": "view_file", "input": {"path": "a b.txt"}}',
        '{"action": "view_file", "parameters": {"path": "a b.txt"}}',
        '{"thought": "I look", "action": "view_file", "path": "a b.txt"}',
        '{"thought": "I look", "action": "view_file", "action_input": {"path": "a b.txt"}}',
        '{"action": {"name": "view_file", "arguments": {"path": "a b.txt"}}}',
        '{"name": "view_file", "arguments": {"path": "a b.txt"}}',
        '{"type": "function", "name": "view_file", "arguments": {"path": "a b.txt"}}',
        '{"type": "function", "function": {"name": "view_file", "arguments": "{\\"path\\": \\"a b.txt\\"}"}}',
        '{"type": "tool_use", "name": "view_file", "input": {"path": "a b.txt"}}',
        '{"function": "view_file", "args": {"path": "a b.txt"}}',
        '{"tool": "view_file", "path": "a b.txt"}',
        '{"tool": {"name": "view_file", "args": {"path": "a b.txt"}}}',
        '{"tool_name": "view_file", "tool_input": {"path": "a b.txt"}}',
        '{"tool_call": {"action": "view_file", "action_input": {"path": "a b.txt"}}}',
        '{"tool_calls": [{"function": {"name": "view_file", "arguments": {"path": "a b.txt"}}}]}',
        '{"actions": [{"action": "view_file", "path": "a b.txt"}]}',
        '{"recipient_name": "functions.view_file", "parameters": {"path": "a b.txt"}}',
        '{"view_file": {"path": "a b.txt"}}',
        '[{"action": "view_file", "path": "a b.txt"}]',
        '<tool_call>\n{"name": "view_file", "arguments": {"path": "a b.txt"}}\n</tool_call>',
        '<tool_call>{"name": "view_file", "arguments": {"path": "a b.txt"}}</tool_call>',
        '[TOOL_CALLS][{"name": "view_file", "arguments": {"path": "a b.txt"}}]',
        '<|python_tag|>{"name": "view_file", "parameters": {"path": "a b.txt"}}<|eom_id|>',
        'Action: {"action": "view_file", "path": "a b.txt"}',
        '<think>or {"action": "shell"}?\n{"action": "shell"}\n</think>\n{"action":"view_file","path":"a b.txt"}',
        'I read it first.\n\n{"action": "view_file", "path": "a b.txt"}',
        '我先看文件：\n```json\n{"action": "view_file", "path": "a b.txt"}\n```',
        '```json\n// look first\n{"action": "view_file", "path": "a b.txt"}\n```',
        '```json {"action": "view_file", "path": "a b.txt"} ```',
        '{"action": "view_file", "path": "a b.txt"}\n```',
        '"{\\"action\\": \\"view_file\\", \\"path\\": \\"a b.txt\\"}"',
        '```json\n{"action": "view_file", "path": "a b.txt"}',
    ],
)
def test_every_usual_spelling_of_an_action_is_read(text: str) -> None:
    assert calls_in(text) == [("view_file", {"path": "a b.txt"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"action":"list_dir","path":"."}\n{"action":"view_file","path":"a"}',
        '{"action":"list_dir","path":"."}{"action":"view_file","path":"a"}',
        '{"action":"list_dir","path":"."},\n\n{"action":"view_file","path":"a"}',
        '[{"action":"list_dir","path":"."}, {"action":"view_file","path":"a"}]',
        '```json\n{"action":"list_dir","path":"."}\n{"action":"view_file","path":"a"}\n```',
        '```json\n{"action":"list_dir","path":"."}\n```\n\n```json\n{"action":"view_file","path":"a"}\n```',
        '<tool_call>\n{"name":"list_dir","arguments":{"path":"."}}\n</tool_call>\n'
        '<tool_call>\n{"name":"view_file","arguments":{"path":"a"}}\n</tool_call>',
        "[{'action':'list_dir','path':'.'}, {'action':'view_file','path':'a'},]",
        '{"action":"list_dir","path":"."}\n---\n{"action":"view_file","path":"a"}',
    ],
)
def test_adjacent_actions_all_count_in_order(text: str) -> None:
    """P11 in the JSON dialect"""
    assert calls_in(text) == [("list_dir", {"path": "."}), ("view_file", {"path": "a"})]


@pytest.mark.parametrize(
    "content",
    [
        'say "hi" to all',
        "# Title\n```bash\npip install x\n```\nend",
        "it's {not} [a] bracket // nor # a comment",
        "C:\\Users\\new\\d+ \\1 \\g<0> $&",
        '中文，“引号”：{"a": 1}',
        'if x == "}":\n    pass',
    ],
)
def test_the_content_of_a_file_arrives_unchanged_in_whatever_form_it_is_written(content: str) -> None:
    call = {"action": "deliver", "path": "a", "content": content}
    python_literal = repr(call)
    fenced = f"```json\n{json.dumps(call, ensure_ascii=False)}\n```"
    raw_newlines = json.dumps(call).replace("\\n", "\n") if "\\" not in content else json.dumps(call)
    for text in (json.dumps(call), fenced, python_literal, raw_newlines):
        assert calls_in(text) == [("deliver", {"path": "a", "content": content})]


@pytest.mark.parametrize("content", ['say "hi" to all', '{"a": 1}', 'he said "yes", then left', '"a" + b'])
def test_unescaped_quotes_in_a_string_are_kept(content: str) -> None:
    text = f'{{"action":"deliver","content":"{content}","path":"x"}}'
    assert calls_in(text) == [("deliver", {"content": content, "path": "x"})]


@pytest.mark.parametrize("quote", ['"""', "'''", "`"])
def test_strings_of_other_languages_are_read(quote: str) -> None:
    content = 'def f():\n    return "x", {1: [2]}\n'
    text = f'{{\n  "action": "deliver",\n  "content": {quote}{content}{quote},\n  "path": "a.py"\n}}'
    assert calls_in(text) == [("deliver", {"content": content, "path": "a.py"})]


def test_a_forgotten_comma_loses_nothing() -> None:
    text = '{"action":"deliver","content":"x"\n "path":"y"}'
    assert calls_in(text) == [("deliver", {"content": "x", "path": "y"})]


@pytest.mark.parametrize(
    "text",
    [
        'I could use {"action":"shell","args":{"cmd":"rm -rf ."}} but it is dangerous, so I will not.',
        '我可以用 {"action":"shell","args":{"cmd":"rm -rf ."}} ，但是太危险了，所以不用。',
        '{"action":"shell","args":{"cmd":"rm -rf ."}} is what I would not do.',
        'Options:\n- {"action":"shell","cmd":"rm"}\n- {"action":"shell","cmd":"ls"}\nI choose neither.',
        '> {"action":"shell","cmd":"rm"}\n\nThat line of yours is dangerous.',
        '1. {"action":"shell","cmd":"rm"}\n2. nothing\n\nWhich one?',
        'Use `{"action":"shell","cmd":"rm"}` with care, if at all.',
        'See:\n```python\nrun({"action":"shell","cmd":"rm"})\n```\nDone.',
        '```python\nx = 1\n{"action":"shell","cmd":"rm"}\n```\n',
        '```markdown\nAn action:\n\n{"action":"shell","cmd":"rm"}\n\n```\nThat is the form.',
        '<think>\n{"action":"shell","cmd":"rm"}\n</think>\nNo, I answer directly.',
        '<think>\n{"action":"shell","cmd":"rm"}\n',
    ],
)
def test_an_object_inside_a_sentence_or_a_quotation_is_no_command(text: str) -> None:
    """P08 reply A"""
    assert parse_reply(text, TOOLS) == Answer(text)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"action":"shell","cmd":"rm -rf ."}\n```\nbut that is dangerous, so I will not.',
        '{"action":"shell","cmd":"rm -rf ."}\n\nI will not do this.',
        'For example:\n```json\n{"action":"shell","cmd":"rm -rf ."}\n```',
        '例如：\n```json\n{"action":"shell","cmd":"rm -rf ."}\n```',
        'I must never run:\n{"action":"shell","cmd":"rm -rf ."}',
        '不要执行：\n{"action":"shell","cmd":"rm -rf ."}',
        '```json\n{"action":"shell","cmd":"rm"}\n```\nThen\n```json\n{"action":"list_dir"}\n```',
        'I would run {"action":"shell","cmd":"rm -rf ."}',
        'Sure, here it is: {"action":"shell","cmd":"ls"}.',
        'tool output: ok\n{"action":"shell","cmd":"ls"}',
        '{"action":"answer","text":"done"}\n{"action":"shell","cmd":"ls"}',
    ],
)
def test_a_reply_that_leaves_open_whether_the_action_is_meant_is_asked_again(text: str) -> None:
    """P08"""
    reading = parse_reply(text, TOOLS)
    assert isinstance(reading, Malformed)
    assert "ONLY the JSON object" in reading.reason


def test_a_quoted_object_before_the_real_action_is_not_run() -> None:
    """P08 reply B"""
    quoted = 'I could use {"action":"shell","args":{"cmd":"rm -rf ."}} but it is dangerous, so I will not.'
    for between in ("\n", " Instead:\n\n"):
        text = f'{quoted}{between}```json\n{{"action":"list_dir","args":{{"path":"."}}}}\n```'
        assert calls_in(text) == [("list_dir", {"path": "."})]


@pytest.mark.parametrize(
    "observation",
    [
        "\nObservation: the file says 42\n",
        " Observation: the file says 42\n",
        "\n\n**Observation:** the file says 42\n",
        "\ntool output: the file says 42\n",
        "\nTool Result:\n42\n",
        "\nResult: 42\n",
        "\n工具输出：42\n",
        "\n观察: 42\n",
        "\nuser: tool output 42\n",
        "\n<tool_response>\n42\n</tool_response>\n",
        '\n{"result": "42"}\n',
        '\n{"status": "success", "summary_data": {"x": 42}}\n',
    ],
)
def test_what_follows_a_made_up_tool_output_is_ignored(observation: str) -> None:
    """P10"""
    first = '{"action":"view_file","args":{"path":"a.txt"}}'
    second = '{"action":"deliver","args":{"summary":"42"}}'
    assert calls_in(f"{first}{observation}{second}") == [("view_file", {"path": "a.txt"})]
    assert calls_in(f"```json\n{first}\n```{observation}```json\n{second}\n```") == [
        ("view_file", {"path": "a.txt"})
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"action": 3}',
        '{"action": ""}',
        '{"action": null, "args": {}}',
        '{"tool_call": {}}',
        '{"tool_call": "delegate to coder"}',
        '{"action_input": {"agent": "coder"}}',
        '[{"action": "list_dir"}, {"action": 5}]',
        '{"action": "deliver", "content": "function() { return 1; }',
        '{"action":"deliver","summary":"aaaa',
        "{'action': 'deliver', 'summary': 'aa",
        '```json\n{"action":"deliver","summary":"aaaa\n```',
        '{"action": "deliver", "content": "d = {"a": 1}',
        '{"action": "deliver", "content": "{"a": "b"}", "path": "x"}',
        '{"action": "answer"}',
        '{"action": "deliver", "args": {"path": "a", "content": "b',
        '{"action":"view_file","path":"a"',
        'Action: view_file\nAction Input: {"path":"a.txt"}',
        "Action: list_dir\nAction Input: .",
        "<tool_call>\n<function=list_dir>\n<parameter=path>.</parameter>\n</function>\n</tool_call>",
        '```tool_code\nlist_dir(path=".")\n```',
        'xclaw uses [delegate]: {"agent":"coder","task":"x"}',
        'list_dir({"path": "."})',
        '{"actions": ["list_dir"]}',
    ],
)
def test_an_attempt_at_an_action_that_is_not_understood_is_asked_again(text: str) -> None:
    """P09, and nothing that was cut off is ever run"""
    reading = parse_reply(text, TOOLS)
    assert isinstance(reading, Malformed)
    assert len(reading.reason) < 500


@pytest.mark.parametrize(
    "text",
    [
        "Hello! How can I help?",
        "",
        "   \n",
        "你好！需要我做什么？",
        "Use f(x) = {1, 2} and [3].",
        '{"name": "Bob", "age": 3}',
        '[{"name": "Bob"}, {"name": "Eve"}]',
        "[1, 2, 3]",
        '{"tool": "hammer", "price": 3}',
        'Here is the data:\n```json\n{"name": "Bob", "tools": []}\n```\nAnything else?',
        "```c\n{\n  return 1;\n}\n```",
        "{ return 1; }",
        "[x] done\n[ ] open",
        '{"steps": {"code": {"status": "done"}}}',
        "42",
        '"text"',
    ],
)
def test_a_reply_without_an_action_is_the_answer_as_it_stands(text: str) -> None:
    """P14"""
    assert parse_reply(text, TOOLS) == Answer(text)


def test_the_result_form_is_an_answer() -> None:
    form = '{"status":"success","summary_data":{"action":"shell"},"artifact_pointers":{}}'
    assert parse_reply(form, TOOLS) == Answer(form)
    fenced = f"Done.\n```json\n{form}\n```"
    assert parse_reply(fenced, TOOLS) == Answer(fenced)
    for name in ("result", "finish"):
        reading = parse_reply(form.replace("{", f'{{"action":"{name}",', 1), TOOLS)
        assert isinstance(reading, Answer)
        assert json.loads(reading.text) == json.loads(form)
    nested = parse_reply(f'{{"action":"result","result":{form}}}', TOOLS)
    assert isinstance(nested, Answer)
    assert json.loads(nested.text) == json.loads(form)


@pytest.mark.parametrize(
    "text",
    [
        '{"action":"answer","text":"Hi"}',
        '{"action":"final_answer","answer":"Hi"}',
        '{"action":"Final Answer","action_input":"Hi"}',
        '{"action":"answer","args":{"text":"Hi"}}',
        '{"action":"finish","text":"Hi"}',
        'Well:\n```json\n{"action":"answer","text":"Hi"}\n```',
        '[{"action":"answer","text":"Hi"}]',
    ],
)
def test_the_answer_action_gives_its_text(text: str) -> None:
    assert parse_reply(text, TOOLS) == Answer("Hi")


def test_a_tool_that_is_called_answer_is_a_tool() -> None:
    assert parse_reply('{"action":"answer","text":"Hi"}', ["answer"]) == Actions(
        (("answer", '{"text":"Hi"}'),)
    )


def test_an_unknown_tool_is_a_call_so_that_the_model_learns_the_real_names() -> None:
    """N01"""
    assert calls_in('{"action":"search_web","q":"x"}') == [("search_web", {"q": "x"})]
    assert calls_in('{"name":"search_web","arguments":{"q":"x"}}') == [("search_web", {"q": "x"})]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"action":"list_dir"}', "{}"),
        ('{"action":"list_dir","args":{}}', "{}"),
        ('{"action":"list_dir","args":null}', "null"),
        ('{"action":"list_dir","args":""}', ""),
        ('{"action":"list_dir","args":[]}', "[]"),
        ('{"action":"list_dir","args":"x"}', '"x"'),
        ('{"action":"list_dir","input":"x","path":"y"}', '{"input":"x","path":"y"}'),
        ('{"action":"delegate","agent":"coder","args":{"task":"x"}}', '{"agent":"coder","task":"x"}'),
    ],
)
def test_arguments_are_handed_on_for_the_decoder_to_judge(text: str, arguments: str) -> None:
    """P03, P05"""
    assert parse_reply(text, TOOLS) == Actions(
        (("delegate" if "delegate" in text else "list_dir", arguments),)
    )


def test_too_many_actions_are_refused() -> None:
    text = "\n".join(f'{{"action":"view_file","path":"{i}"}}' for i in range(65))
    reading = parse_reply(text, TOOLS)
    assert isinstance(reading, Malformed)
    assert "64" in reading.reason


JUNK = {
    "braces": "{" * 400_000,
    "brace lines": "{\n" * 200_000,
    "bracket lines": "[{\n" * 130_000,
    "open strings": '{"a\n' * 100_000,
    "open single quotes": "{'" * 200_000,
    "long rows": ("[{" + "1," * 50 + "\n") * 4_000,
    "quotes": '{"action":' + '"' * 400_000 + "}",
    "actions": '{"action":"x"}\n' * 25_000,
    "fences": "```json\n{\n" * 40_000,
    "open fences": '```json\n{"a":\n' * 25_000,
    "backslashes": '{"action":"' + "\\" * 400_000,
    "inline": 'I {"action": ' * 30_000,
    "comments": "{/*" * 130_000,
    "hashes": '{"a":1}\n' + "# a\n" * 100_000,
    "words": "{" + "a " * 200_000 + "}",
    "escapes": "{'action':'" + "\\'" * 200_000 + "'}",
    "curly quotes": "{“" * 200_000,
    "tags": "<tool_call>" * 36_000 + "{",
    "closers": "}" * 400_000 + "{",
    "dots": '{"action":"x"}\n' + "." * 400_000,
    "spaces": "{" + " " * 400_000,
    "status": '{"status": ' * 36_000,
    "lines before an action": "\n" * 400_000 + '{"action": "delegate", "task": "x"}',
}


@pytest.mark.parametrize("name", sorted(JUNK))
def test_huge_junk_is_read_in_linear_time(name: str) -> None:
    """400 kB take under 50 ms on an idle machine; anything quadratic takes minutes."""
    started = time.process_time()
    parse_reply(JUNK[name], TOOLS)
    assert time.process_time() - started < 1


def test_a_huge_action_is_read_whole() -> None:
    content = "line\n" * 80_000
    assert calls_in(json.dumps({"action": "deliver", "content": content})) == [
        ("deliver", {"content": content})
    ]
    raw = f'Here:\n```json\n{{"action": "deliver", "content": "{content}",}}\n```'
    assert calls_in(raw) == [("deliver", {"content": content})]


FRAGMENTS = st.sampled_from(
    [
        "{", "}", "[", "]", '"', "'", "\n", ",", ":", "```", "```json\n", "~~~", "\\", "//", "/*", "#", " ",
        '{"action":"shell"}', '{"action":"list_dir","path":"."}', '"action"', '"args"', "Observation:", "x",
        "<tool_call>", "</tool_call>", "<think>", "</think>", "shell", "list_dir", "null", "1e999", "\ud800",
        '{"tool_call":', '{"status":"success","summary_data":', "：", "“", "例如", "\x00", "\r", '"\\ud800"',
    ]
)  # fmt: skip


@given(st.lists(FRAGMENTS | st.text(max_size=5), max_size=40).map("".join))
def test_any_text_is_read_without_an_exception_and_no_call_is_invented(text: str) -> None:
    reading = parse_reply(text, TOOLS)
    if isinstance(reading, Actions):
        assert reading.calls
        for name, arguments in reading.calls:
            assert name in text or (resolve_name(name, TOOLS) and name.replace("_", "") in text.lower())
            assert isinstance(arguments, str)
    if isinstance(reading, Answer) and '"action"' not in text and '"status"' not in text:
        assert reading.text == text


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PARAMETERS = st.dictionaries(
    st.text(max_size=10) | st.sampled_from(["input", "args", "type", "status", "action", "thought", "name"]),
    JSON_VALUES,
    max_size=4,
)


@given(st.lists(st.tuples(st.sampled_from(TOOLS), PARAMETERS), min_size=1, max_size=4))
def test_past_calls_are_shown_in_a_form_that_reads_as_the_same_calls(
    wanted: list[tuple[str, dict[str, object]]],
) -> None:
    calls = [ToolCall(f"c{i}", name, json.dumps(args)) for i, (name, args) in enumerate(wanted)]
    assert calls_in(render_calls(calls)) == wanted


@given(st.sampled_from(TOOLS), PARAMETERS, st.text(max_size=60))
def test_a_call_before_other_words_is_run_as_written_or_not_at_all(
    name: str, arguments: dict[str, object], after: str
) -> None:
    line = render_calls([ToolCall("c", name, json.dumps(arguments))])
    reading = parse_reply(f"{line}\n{after}", [*TOOLS])
    if isinstance(reading, Actions):
        assert json.loads(reading.calls[0][1]) == arguments
