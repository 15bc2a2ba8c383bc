"""What a small model needs instead of long instructions: a short brief, worked examples, a tight schema.

Found by trying with the embedded model; nothing here knows that model, so any profile with `few_shots`
can be served so. The examples are neutral messages: the dialect renders them like the
conversation that follows.
"""

import json
from collections.abc import Mapping, Sequence

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage

WORKER_TOOLS = ("deliver", "view_file")
"""What a small model can choose from with some certainty."""

_ORCHESTRATOR_BRIEF = """\
You are the orchestrator of a team. Split the user's request into parts and hand each part to one agent.
Agents:
{agents}

Answer with one JSON object per turn, nothing else:
{{"action":"delegate","task":"...","agent":"..."}} hands one part to one agent, who sees only the task: put \
every detail of the request into it. The result comes back as "tool output:".
{{"action":"debate","question":"...","agents":["...","..."]}} asks several agents for their opinions.
{{"action":"pipeline","steps":[{{"task":"...","agent":"..."}}]}} is a line of text steps; {{{{input}}}} in a task \
is the step before's output.
{{"action":"answer","text":"..."}} ends, in the user's language, when every part is done. Answer a simple \
question at once.
Code with its tests, a review, and a document are different parts: one delegate for each, in order. Never \
repeat a part that is done. Use the paths from artifact_pointers in later tasks."""

_WORKER_RULES = """\
Answer with one JSON object per turn, nothing else:
{"action":"deliver","path":"<file name>","content":"<the whole file>"} hands in one finished file.
{"action":"view_file","path":"..."} reads an input artifact; read it before you judge it.
What comes back starts with "tool output:".
{"action":"result","status":"success","summary_data":{"summary":"..."},"artifact_pointers":{}} ends. Deliver \
every file that the task asks for first, each one once. Keep a file under 50 lines: short docstrings, no doctests, \
few examples. status is "error" if the task cannot be done.
{"action":"answer","text":"..."} ends instead when the text begins without a [Task workspace: ...] header.
In JSON a line break in a file is \\n, a backslash \\\\, a quote \\". Write in the language of the task."""


def orchestrator_brief(agents: Mapping[str, str]) -> str:
    """A short system prompt for an orchestrator; `agents` maps names to descriptions."""
    return _ORCHESTRATOR_BRIEF.format(agents="\n".join(f"- {name}: {text}" for name, text in agents.items()))


def worker_brief(role: str) -> str:
    """A short system prompt for a worker. `role`: what it is, in a sentence or two."""
    return f"{role.strip()}\n\n{_WORKER_RULES}"


def progress_note(done: Sequence[str], missing: Sequence[str]) -> str:
    """What an orchestrator reads after a tool output: `done`, the agents that have given results,
    and `missing`, those whose part was asked for and not handed out yet.

    Without it a small model may hand out the same part for ever.
    """
    then = f"Next: the part for {missing[0]}." if missing else "Go on with the next part, or end with answer."
    return f"(Done: {', '.join(done)}. {then})"


def delivery_note(delivered: Sequence[str]) -> str:
    """What a worker reads after a tool output; `delivered`: the files it has handed in."""
    return f"(Delivered: {', '.join(delivered)}. If the task names another file, deliver that; if not, end.)"


class Example:
    """Builds one example conversation; ids only have to be unique in it."""

    def __init__(self, text: str) -> None:
        self._messages: list[ChatMessage] = [UserMessage(text)]

    def call(self, name: str, output: object, **arguments: object) -> "Example":
        call_id = f"example{len(self._messages)}"
        content = output if isinstance(output, str) else _json(output)
        self._messages.append(AssistantMessage("", (ToolCall(call_id, name, _json(arguments)),)))
        self._messages.append(ToolMessage(call_id, name, content))
        return self

    def end(self, **final: object) -> tuple[ChatMessage, ...]:
        return (*self._messages, AssistantMessage(_json(final)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _result(summary: str, *paths: str) -> dict[str, object]:
    """A child's result as its parent sees it."""
    pointers = {path.rsplit("/", 1)[-1]: path for path in paths}
    return {
        "status": "success",
        "outcome": "success",
        "artifact_pointers": pointers,
        "summary_data": {"summary": summary},
    }


def task_text(number: str, text: str, *inputs: str) -> str:
    """A task with its headers (SPEC D1)."""
    headers = f"[Task workspace: /workspace/agents/{number}]\n\n[Shared delivery dir: /workspace/shared/{number}]\n\n"
    return headers + (f"[Input artifacts: {', '.join(inputs)}]\n\n" if inputs else "") + text


_PARTS_IN_ENGLISH = (
    Example(
        "Create a temperature converter module in Python with tests, get it reviewed and write docs for it"
    )
    .call(
        "delegate",
        _result(
            "Two functions, 6 tests.",
            "/workspace/shared/1a2b3c/temperature.py",
            "/workspace/shared/1a2b3c/test_temperature.py",
        ),
        task="Write the Python module temperature.py with celsius_to_fahrenheit(c) and fahrenheit_to_celsius(f), both "
        "from float to float, and pytest tests for them in test_temperature.py. Deliver both files.",
        agent="coder",
    )
    .call(
        "delegate",
        _result("Correct. One remark: text instead of a number is not refused."),
        task="Review the Python module /workspace/shared/1a2b3c/temperature.py: is it correct, what happens with wrong "
        "input, what is unclear? List each problem with its fix.",
        agent="reviewer",
    )
    .call(
        "delegate",
        _result("One page with two examples.", "/workspace/shared/4d5e6f/README.md"),
        task="Write README.md for the Python module /workspace/shared/1a2b3c/temperature.py with celsius_to_fahrenheit(c) "
        "and fahrenheit_to_celsius(f): purpose, how to import it, one example for each function. Deliver README.md.",
        agent="writer",
    )
    .end(
        action="answer",
        text="Done. Module: /workspace/shared/1a2b3c/temperature.py, tests: /workspace/shared/1a2b3c/test_temperature.py, docs: "
        "/workspace/shared/4d5e6f/README.md. The review found it correct; text instead of a number is not refused yet.",
    )
)

_QUESTION = Example("What does HTTP status 404 mean?").end(
    action="answer", text="404 means that the server has nothing at this address."
)

_PARTS_IN_CHINESE = (
    Example("用 Go 实现一个 LRU 缓存，再写一份说明文档")
    .call(
        "delegate",
        _result("实现了 Get 和 Put。", "/workspace/shared/7a8b9c/lru.go"),
        task="用 Go 实现 LRU 缓存 lru.go：NewLRU(capacity int)、Get(key string)、Put(key string, value any)，"
        "超过容量时淘汰最久未使用的项。交付 lru.go。",
        agent="coder",
    )
    .call(
        "delegate",
        _result("一页说明，两个示例。", "/workspace/shared/0d1e2f/README.md"),
        task="为 Go 的 LRU 缓存 /workspace/shared/7a8b9c/lru.go 写说明文档 README.md：用途，NewLRU、Get、Put 的用法和示例。"
        "交付 README.md。",
        agent="writer",
    )
    .end(
        action="answer",
        text="已完成。代码：/workspace/shared/7a8b9c/lru.go，文档：/workspace/shared/0d1e2f/README.md。",
    )
)

_OPINIONS = (
    Example("Should we store sessions in Redis or in PostgreSQL?")
    .call(
        "debate",
        "[optimizer]\nRedis is faster.\n---\n[skeptic]\nRedis loses sessions when it crashes.",
        question="Should a web application store user sessions in Redis or in PostgreSQL? Compare speed, durability "
        "and operations, and recommend one.",
        agents=["optimizer", "skeptic"],
    )
    .end(
        action="answer",
        text="PostgreSQL is the safer choice: Redis is faster, but it may lose sessions in a crash.",
    )
)

_LINE = (
    Example(
        "Extract the key figures from this text, analyse them and write a short report: Sales rose 4% to 20 million."
    )
    .call(
        "pipeline",
        "Report: sales grew moderately, by 4% to 20 million.",
        steps=[
            {
                "task": "Extract all figures from this text: Sales rose 4% to 20 million.",
                "agent": "extractor",
            },
            {"task": "Analyse these figures: {{input}}", "agent": "analyzer"},
            {"task": "Write a short report from this analysis: {{input}}", "agent": "reporter"},
        ],
    )
    .end(action="answer", text="Report: sales grew moderately, by 4% to 20 million.")
)

orchestrator_shots: tuple[ChatMessage, ...] = (
    *_PARTS_IN_ENGLISH,
    *_QUESTION,
    *_LINE,
    *_PARTS_IN_CHINESE,
    *_OPINIONS,
)
"""Every action once. A small model copies the last example most, so that is not one of many parts."""

_CODE_WITH_TESTS = (
    Example(
        task_text(
            "1a2b3c",
            "Write the Python module phone.py with digits(text) and pytest tests in test_phone.py. Deliver both.",
        )
    )
    .call(
        "deliver",
        "delivered: /workspace/shared/1a2b3c/phone.py",
        path="phone.py",
        content='import re\n\n\ndef digits(text):\n    """Return the digits of text, spaces and signs removed."""\n'
        '    if not isinstance(text, str):\n        raise TypeError("text must be a string")\n'
        '    return "".join(re.findall(r"\\d+", text))\n',
    )
    .call(
        "deliver",
        "delivered: /workspace/shared/1a2b3c/test_phone.py",
        path="test_phone.py",
        content="import pytest\nfrom phone import digits\n\n\ndef test_signs_are_removed():\n"
        '    assert digits("+49 (30) 12-3") == "4930123"\n\n\ndef test_empty():\n    assert digits("") == ""\n\n\n'
        "def test_wrong_type():\n    with pytest.raises(TypeError):\n        digits(5)\n",
    )
    .end(
        action="result",
        status="success",
        summary_data={"summary": "digits(text) with a type check, and 3 tests; not run."},
        artifact_pointers={},
    )
)

_REVIEW_IN_CHINESE = (
    Example(
        task_text(
            "4d5e6f",
            "审查 /workspace/shared/7a8b9c/lru.go，列出每个问题和修改建议。",
            "/workspace/shared/7a8b9c/lru.go",
        )
    )
    .call(
        "view_file",
        "type LRU struct { items map[string]any }\n\nfunc (c *LRU) Get(key string) any { return c.items[key] }",
        path="/workspace/shared/7a8b9c/lru.go",
    )
    .end(
        action="result",
        status="success",
        summary_data={
            "summary": "1. map 没有加锁，多个 goroutine 同时访问会出错：加 sync.Mutex。"
            "2. 键不存在时返回 nil，与存入的 nil 无法区分：返回 (any, bool)。"
        },
        artifact_pointers={},
    )
)

_REVIEW_IN_ENGLISH = (
    Example(
        task_text(
            "5a6b7c",
            "Review /workspace/shared/2d3e4f/parse.py: list each problem with its fix.",
            "/workspace/shared/2d3e4f/parse.py",
        )
    )
    .call(
        "view_file",
        "def parse(line):\n    return int(line.split(',')[1])",
        path="/workspace/shared/2d3e4f/parse.py",
    )
    .end(
        action="result",
        status="success",
        summary_data={
            "summary": "1. A line without a comma raises IndexError: check the number of fields. 2. No docstring: say "
            "which field is returned."
        },
        artifact_pointers={},
    )
)

_DOCUMENT_IN_ENGLISH = (
    Example(
        task_text(
            "8d9e0f", "Write USAGE.md for the Python module parse.py with parse(line). Deliver USAGE.md."
        )
    )
    .call(
        "deliver",
        "delivered: /workspace/shared/8d9e0f/USAGE.md",
        path="USAGE.md",
        content="# parse.py\n\nReads the second field of a line as a number.\n\n```python\nfrom parse import parse\n\n"
        'print(parse("a,5"))  # 5\n```\n',
    )
    .end(
        action="result",
        status="success",
        summary_data={"summary": "A short page with one example."},
        artifact_pointers={},
    )
)

_DOCUMENT_IN_CHINESE = (
    Example(task_text("0d1e2f", "为温度换算模块 temperature.py 写使用说明 USAGE.md。交付 USAGE.md。"))
    .call(
        "deliver",
        "delivered: /workspace/shared/0d1e2f/USAGE.md",
        path="USAGE.md",
        content="# temperature.py 使用说明\n\n## 用途\n\n摄氏与华氏温度互相换算。\n\n## 示例\n\n```python\n"
        "from temperature import celsius_to_fahrenheit\n\nprint(celsius_to_fahrenheit(100.0))  # 212.0\n```\n",
    )
    .end(
        action="result",
        status="success",
        summary_data={"summary": "一页使用说明，含一个示例。"},
        artifact_pointers={},
    )
)

_OPINION = Example("Should a team of three people use microservices?").end(
    action="answer",
    text="No. Three people gain little from separate deployments and pay for network errors, versions and monitoring. "
    "Start with one well divided application.",
)

_STEP = Example("提取这段话中的数字：去年销售额增长 4%，达到 2000 万元。").end(
    action="answer", text="销售额增长：4%；销售额：2000 万元。"
)

worker_shots: tuple[ChatMessage, ...] = (
    *_OPINION,
    *_STEP,
    *_REVIEW_IN_CHINESE,
    *_DOCUMENT_IN_CHINESE,
    *_REVIEW_IN_ENGLISH,
    *_DOCUMENT_IN_ENGLISH,
    *_CODE_WITH_TESTS,
)
"""Text without a header is answered; a task is delivered before its result. Kinds of work come in both
languages, since the example of a kind decides in which one it is done. Two files come last."""
