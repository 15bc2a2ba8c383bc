"""The interpreter that a workflow script runs in (standard library only), started by `interpreter.py`.

It reads one order from standard input, closes itself (`lockdown`), and then speaks JSON lines: what the
script wants is asked of the parent, which believes nothing of it.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace, TracebackType
from typing import cast

from xclaw.patterns.workflows import facades, lockdown
from xclaw.patterns.workflows.counting import counted
from xclaw.patterns.workflows.rewriting import FINISH, LAST, rewritten
from xclaw.patterns.workflows.syntax import Refused, parsed
from xclaw.patterns.workflows.threads import Workers

SCRIPT = "workflow.py"
VIOLATION = 78
PARENT_GONE = 79
_PLACEHOLDER = "{{input}}"
_NESTING = 400


class AgentRefused(Exception):
    """An agent could not be started: it is unknown, or a bound was met."""


class Result:
    """How an agent ended, as a script sees it."""

    __slots__ = ("agent", "artifacts", "data", "ok", "outcome", "reason", "text")

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.agent = fields["agent"]
        self.ok = fields["ok"]
        self.outcome = fields["outcome"]
        self.text = fields["text"]
        self.data = fields["data"]
        self.artifacts = fields["artifacts"]
        self.reason = fields["reason"]

    def __str__(self) -> str:
        return str(self.text)

    def __repr__(self) -> str:
        return f"Result({self.agent!r}, {self.outcome!r}, {str(self.text)[:80]!r})"

    def __bool__(self) -> bool:
        return bool(self.ok)

    def __getitem__(self, key: str) -> object:
        return cast("dict[str, object]", self.data)[key]


class _Finished(BaseException):
    """A `return` of the script itself."""

    def __init__(self, value: object) -> None:
        self.value = value


class _Line:
    """The pipes to the parent. Several threads ask; one reads the answers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[int, tuple[threading.Event, list[dict[str, object]]]] = {}
        self._last = 0

    def say(self, said: Mapping[str, object]) -> None:
        # Half a character, which a script can have, is none that a line can hold.
        data = json.dumps(said, ensure_ascii=False, default=plain).encode("utf-8", "replace") + b"\n"
        with self._lock:
            _write(data)

    def ask(self, asked: Mapping[str, object]) -> dict[str, object]:
        told, answer = threading.Event(), list[dict[str, object]]()
        with self._lock:
            self._last += 1
            number = self._last
            self._answers[number] = (told, answer)
        self.say({"call": number, **asked})
        told.wait()
        return answer[0]

    def read_answers(self) -> None:
        """For ever, in a thread of its own. The parent's end is the process's."""
        for line in sys.stdin.buffer:
            answered = cast("dict[str, object]", json.loads(line))
            told, answer = self._answers.pop(cast("int", answered["reply"]))
            answer.append(answered)
            told.set()
        os._exit(PARENT_GONE)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _violated(event: str) -> None:
    _write(json.dumps({"violation": event}).encode() + b"\n")
    os._exit(VIOLATION)


def plain(value: object) -> object:
    """A value that JSON does not know, as one that it does."""
    if isinstance(value, Result):
        fields: dict[str, object] = {"agent": value.agent, "outcome": value.outcome, "text": value.text}
        return {**fields, "data": value.data, "artifacts": value.artifacts, "reason": value.reason}
    if isinstance(value, set | frozenset):
        return sorted(cast("set[object]", value), key=str)
    return str(value)


class _Functions:
    """What a script calls."""

    def __init__(self, line: _Line, workers: Workers) -> None:
        self._line = line
        self._workers = workers

    def names(self) -> dict[str, object]:
        # Plain functions: a bound method would lead to this object.
        def agent(name: object, task: object, inputs: object = None, schema: object = None) -> Result:
            return self._agent(name, task, inputs, schema)

        def parallel(items: object) -> list[object]:
            return self._parallel(items)

        def pipeline(steps: object, start: object = "") -> object:
            return self._pipeline(steps, start)

        def phase(name: object) -> None:
            self._line.say({"phase": str(name)})

        def log(*texts: object, **_: object) -> None:
            self._line.say({"log": " ".join(map(str, texts))})

        return {
            "agent": agent,
            "parallel": parallel,
            "pipeline": pipeline,
            "phase": phase,
            "log": log,
            "print": log,
            "AgentRefused": AgentRefused,
        }

    def _agent(self, name: object, task: object, inputs: object, schema: object) -> Result:
        answer = self._line.ask(
            {"agent": str(name), "task": str(task), "inputs": _paths(inputs), "schema": schema}
        )
        if "refused" in answer:
            raise AgentRefused(answer["refused"])
        return Result(cast("dict[str, object]", answer["result"]))

    def _parallel(self, items: object) -> list[object]:
        parts = list(cast("list[object]", items))
        return self._workers.run([self._thunk(part) for part in parts])

    def _thunk(self, part: object) -> Callable[[], object]:
        return lambda: self._agent_of(part) if _is_spec(part) else part() if callable(part) else part

    def _agent_of(self, spec: object) -> Result:
        if isinstance(spec, tuple):
            name, task = cast("tuple[object, object]", spec)
            return self._agent(name, task, None, None)
        wanted = cast("dict[str, object]", spec)
        name = wanted.get("agent", wanted.get("name"))
        return self._agent(name, wanted["task"], wanted.get("inputs"), wanted.get("schema"))

    def _pipeline(self, steps: object, start: object) -> object:
        before: object = start
        for step in cast("list[object]", steps):
            if _is_spec(step):
                before = self._agent_of(_filled(step, before))
            elif callable(step):
                before = step(before)
            else:
                raise TypeError("a step is a pair (agent, task) or a function of what came before")
            if isinstance(before, Result) and not before.ok:
                break
        return before


def _filled(spec: object, before: object) -> object:
    artifacts = list(cast("dict[str, str]", before.artifacts).values()) if isinstance(before, Result) else []
    if isinstance(spec, tuple):
        name, task = cast("tuple[object, object]", spec)
        wanted: dict[str, object] = {"agent": name, "task": task}
    else:
        wanted = dict(cast("dict[str, object]", spec))
    wanted["task"] = str(wanted["task"]).replace(_PLACEHOLDER, str(before))
    wanted["inputs"] = [*_paths(wanted.get("inputs")), *artifacts]
    return wanted


def _is_spec(part: object) -> bool:
    if isinstance(part, tuple):
        pair = cast("tuple[object, ...]", part)
        return len(pair) == 2 and all(isinstance(text, str) for text in pair)
    return isinstance(part, dict) and "task" in part and ("agent" in part or "name" in part)


def _paths(inputs: object) -> list[str]:
    if inputs is None:
        return []
    if isinstance(inputs, Result):
        return list(cast("dict[str, str]", inputs.artifacts).values())
    if isinstance(inputs, str):
        return [inputs]
    if isinstance(inputs, dict):
        return [path for each in cast("dict[str, object]", inputs).values() for path in _paths(each)]
    return [path for each in cast("list[object]", inputs) for path in _paths(each)]


def _finish(value: object = None) -> None:
    raise _Finished(value)


def _run(source: str, line: _Line, workers: Workers, order: Mapping[str, object]) -> None:
    """Close the interpreter, run the script, say how it ended."""
    stand_ins = facades.modules()
    hook = lockdown.lock_down(
        cast("int", order["memory_bytes"]), cast("int", order["processor_s"]), _violated
    )
    try:
        tree = parsed(source)
        if order["only_check"]:
            found = counted(tree)
            line.say({"checked": {"agents": found.agents, "most": found.most}})
            return
        code = compile(rewritten(tree), SCRIPT, "exec", dont_inherit=True)
    except Refused as refused:
        line.say({"refused": str(refused)})
        return
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        line.say({"refused": f"{where}{getattr(error, 'msg', '') or type(error).__name__}"})
        return
    names = _namespace(stand_ins, _Functions(line, workers))
    sys.setrecursionlimit(_NESTING)
    hook.arm()
    ended = _ended(code, names, hook)
    sys.setrecursionlimit(_NESTING * 2)  # for what is said of it
    line.say(ended)


def _namespace(stand_ins: Mapping[str, SimpleNamespace], functions: _Functions) -> dict[str, object]:
    return {
        "__builtins__": facades.builtin_names(stand_ins),
        "__name__": "workflow",
        FINISH: _finish,
        **{name: stand_ins[name] for name in ("json", "re", "math")},
        **functions.names(),
    }


def _ended(code: object, names: dict[str, object], hook: lockdown.Hook) -> dict[str, object]:
    """Run the script; its output, or what it failed of."""
    try:
        exec(cast("str", code), names)
    except _Finished as finished:
        hook.disarm()
        return _done(finished.value)
    except BaseException as failure:  # noqa: BLE001 - whatever a script raises is its answer
        hook.disarm()
        return {"failed": _failure(failure)}
    hook.disarm()
    value = names.get(LAST)
    return _done(names.get("result") if value is None else value)


def _done(value: object) -> dict[str, object]:
    try:
        return {
            "done": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=plain)
        }
    except (ValueError, TypeError, RecursionError) as error:
        return {"failed": f"its output is no JSON: {error}"}


def _failure(failure: BaseException) -> str:
    try:
        text = str(failure)[:2_000]
    except Exception:  # noqa: BLE001 - a text that cannot be made is none
        text = ""
    line = _line_of(failure.__traceback__)
    where = f"line {line}: " if line else ""
    return f"{where}{type(failure).__name__}: {text}"


def _line_of(trace: TracebackType | None) -> int:
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SCRIPT:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def main() -> None:
    """Never returns."""
    order = cast("dict[str, object]", json.loads(sys.stdin.buffer.readline()))
    line = _Line()
    lockdown.prepare()
    workers = Workers()
    threading.Thread(target=line.read_answers, daemon=True).start()
    try:
        _run(cast("str", order["script"]), line, workers, order)
    except Exception as error:  # noqa: BLE001 - the last word of the process, whatever went wrong
        line.say({"refused": f"its interpreter failed: {type(error).__name__}: {str(error)[:200]}"})
    os._exit(0)
