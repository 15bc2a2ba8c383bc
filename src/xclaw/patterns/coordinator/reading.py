"""A plan as a model writes it, into tasks; every fault of it in one error, so that one answer can mend all (SPEC H5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xclaw.contracts.coordination import Coordination
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.tools import ToolContext
from xclaw.patterns.arguments import as_list, as_mapping, first_of, parsed_value, shown
from xclaw.patterns.coordinator.graph import ancestors, conflicts, find_cycle, normalised
from xclaw.patterns.coordinator.workers import worker
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.selfcontained import check

EXAMPLE = (
    '[{"id": "core", "agent": "coder", "task": "Write ...", "writes": ["core.py"], "depends_on": []}, '
    '{"id": "docs", "agent": "writer", "task": "...", "writes": ["README.md"], "depends_on": ["core"]}]'
)
MAX_FAULTS = 12
TASK_CHARACTERS = 20_000
ID_CHARACTERS = 60
MAX_WRITES = 50


@dataclass(slots=True)
class Faults:
    """What is wrong with a plan, all of it."""

    texts: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> None:
        self.texts.append(text)

    def refuse(self) -> None:
        """Raises `ToolFailed` if there are any."""
        if self.texts:
            more = f"\n- and {len(self.texts) - MAX_FAULTS} more" if len(self.texts) > MAX_FAULTS else ""
            listed = "\n".join(f"- {text}" for text in self.texts[:MAX_FAULTS])
            raise ToolFailed(
                f"the plan was not accepted:\n{listed}{more}\nMend this and send the whole plan again"
            )


async def read_plan(
    value: object, context: ToolContext, find_artifact: FindArtifact, most: int
) -> tuple[PlannedTask, ...]:
    """The tasks of a plan that can be carried out. Raises `ToolFailed` with everything that is wrong."""
    items = _items(value)
    if len(items) > most:
        raise ToolFailed(f"the plan has {len(items)} tasks; at most {most}. Put small ones together")
    faults = Faults()
    tasks = [_task(item, f"plan[{index}]", context, faults) for index, item in enumerate(items)]
    faults.refuse()
    _check_graph(tasks, context.coordination(), faults, copies=context.project is not None)
    faults.refuse()
    edges = {task.id: [each for each in task.depends_on if each in {t.id for t in tasks}] for task in tasks}
    before = ancestors(edges)
    by_id = {task.id: task for task in tasks}
    checked: list[PlannedTask] = []
    for task in tasks:
        written = {path for each in before[task.id] for path in by_id[each].writes}
        checked.append(await _with_inputs(task, written, context, find_artifact, faults))
    faults.refuse()
    return tuple(checked)


def _items(value: object) -> list[object]:
    parsed = parsed_value(value) if isinstance(value, str) else value
    mapping = as_mapping(parsed)
    if mapping is not None:
        inner = first_of(mapping, ("tasks", "plan", "steps"))
        parsed = [mapping] if inner is None else parsed_value(inner) if isinstance(inner, str) else inner
    items = as_list(parsed)
    if not items:
        raise ToolFailed(f"`plan` must be a list of tasks, not {shown(value)}, e.g. {EXAMPLE}")
    return items


def _task(item: object, place: str, context: ToolContext, faults: Faults) -> PlannedTask:
    fields = as_mapping(item)
    if fields is None:
        faults.add(f"{place} must be an object with id, agent, task, writes, depends_on, not {shown(item)}")
        return PlannedTask(place, "", "")
    name = first_of(fields, ("id", "name", "key"))
    task_id = str(name).strip() if isinstance(name, str | int) else ""
    if not task_id or len(task_id) > ID_CHARACTERS or not task_id.isprintable():
        faults.add(f"{place}.id must be a short name such as core, not {shown(name)}")
    text = first_of(fields, ("task", "prompt", "instructions"))
    if not isinstance(text, str) or not text.strip():
        faults.add(f"{place}.task must be text, not {shown(text)}")
        text = ""
    if len(text) > TASK_CHARACTERS:
        faults.add(
            f"{place}.task has {len(text)} characters; at most {TASK_CHARACTERS}. Hand material on as inputs"
        )
    agent = ""
    try:
        agent = worker(context.spawn, str(first_of(fields, ("agent", "worker")) or ""), f"{place}.agent")
    except ToolFailed as fault:
        faults.add(str(fault))
    depends_on = _names(
        fields, ("depends_on", "dependsOn", "dependencies", "after"), f"{place}.depends_on", faults
    )
    return PlannedTask(
        task_id,
        agent,
        text,
        _names(fields, ("inputs",), f"{place}.inputs", faults),
        _writes(fields, place, faults),
        tuple(dict.fromkeys(depends_on)),
    )


def _names(
    fields: Mapping[str, object], keys: tuple[str, ...], place: str, faults: Faults
) -> tuple[str, ...]:
    value = first_of(fields, keys)
    if value is None or value == "":
        return ()
    parsed = parsed_value(value) if isinstance(value, str) else value
    items = as_list(parsed)
    if items is None and isinstance(value, str) and value.strip()[:1] not in ("[", "{"):
        items = [part for part in value.replace("\n", ",").split(",") if part.strip()]
    if items is None or not all(isinstance(item, str | int) for item in items):
        faults.add(f"{place} must be a list of texts, not {shown(value)}")
        return ()
    return tuple(str(item).strip() for item in items if str(item).strip())


def _writes(fields: Mapping[str, object], place: str, faults: Faults) -> tuple[str, ...]:
    written = _names(fields, ("writes", "files", "outputs"), f"{place}.writes", faults)
    if len(written) > MAX_WRITES:
        faults.add(f"{place}.writes names {len(written)} places; at most {MAX_WRITES}. Name a directory")
    paths: dict[str, None] = {}
    for path in written[:MAX_WRITES]:
        try:
            paths[normalised(path)] = None
        except ValueError as fault:
            faults.add(f"{place}.writes: {shown(path)} {fault}")
    return tuple(paths)


def _check_graph(tasks: Sequence[PlannedTask], state: Coordination, faults: Faults, *, copies: bool) -> None:
    """`copies`: each works on a copy of its own, and two may write to the same place."""
    ids = [task.id for task in tasks]
    for name in dict.fromkeys(name for name in ids if ids.count(name) > 1):
        faults.add(f"the id {shown(name)} stands {ids.count(name)} times; give each task an id of its own")
    earlier = {name for name, result in state.results.items() if result.succeeded}
    for task in tasks:
        for name in task.depends_on:
            if name not in ids and name not in earlier:
                known = ", ".join(dict.fromkeys([*ids, *earlier]))
                faults.add(
                    f"task {task.id} depends on {shown(name)}, which is no task. There are: {known[:400]}"
                )
    if faults.texts:
        return
    edges = {task.id: [name for name in task.depends_on if name in ids] for task in tasks}
    cycle = find_cycle(edges)
    if cycle:
        faults.add(f"these wait for one another: {' -> '.join(cycle)}; take one of the dependencies out")
        return
    for one, other, place in () if copies else conflicts(tasks, edges):
        faults.add(
            f"{one} and {other} may run at once and both write {place}; let one depend on the other, put them "
            "together, or have them write different files"
        )


async def _with_inputs(
    task: PlannedTask, written: set[str], context: ToolContext, find_artifact: FindArtifact, faults: Faults
) -> PlannedTask:
    """The task with its artifacts found. A file that a task before it writes comes with that one's result."""
    named = [path for path in task.inputs if not _is_written(path, written)]
    paths: dict[str, None] = {}
    for path in named:
        try:
            for pointer in await handed_on([path], [], find_artifact, context.workspace):
                paths[pointer.path] = None
        except ToolFailed:
            faults.add(
                f"task {task.id}: the input {shown(path)} is no artifact that you were given, and no task that "
                "this one depends on writes it. Correct it, add the dependency, or put the path into the task's text"
            )
    for pointer in await handed_on(None, [task.task], find_artifact, context.workspace):
        paths[pointer.path] = None
    has_inputs = bool(paths or task.depends_on)
    dangling = check(task.task, has_inputs=has_inputs)
    if dangling:
        faults.add(f"task {task.id} is not self-contained: {dangling}")
    return replace(task, inputs=tuple(paths))


def _is_written(path: str, written: set[str]) -> bool:
    try:
        wanted = normalised(path)
    except ValueError:
        return False
    return any(wanted == place or wanted.startswith(f"{place}/") for place in written)
