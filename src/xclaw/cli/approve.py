"""`xclaw approve`: what waits for a person, and the person's answer, from any terminal."""

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, complain
from xclaw.cli.opening import settings_of_workspace, with_app
from xclaw.cli.options import ApproveOptions
from xclaw.cli.questions import answer_from, choices_text, edited_arguments, question_text
from xclaw.contracts.approvals import Answer, Approval, Decision
from xclaw.contracts.errors import UsageError
from xclaw.contracts.users import OWNER

if TYPE_CHECKING:
    from xclaw.app import App

PROMPT = "> "


def approve(options: ApproveOptions) -> int:
    """List what waits, or answer one; answers the exit code."""

    async def body(app: "App") -> int:
        if options.approval is None:
            if _decision(options) != "once" or options.rule is not None:
                raise UsageError("name the approval that this answers: xclaw approve ID ...")
            _print_list(app, await app.runs.approvals.pending(), as_json=options.as_json)
            return DONE
        approval = await _found(app, options.approval)
        answer = _answer(options, approval)
        await app.runs.approvals.answer(approval.approval_id, answer, by=OWNER)
        _print_answered(app, approval, answer, as_json=options.as_json)
        return DONE

    return with_app(settings_of_workspace(options.workspace), body)


def _decision(options: ApproveOptions) -> Decision:
    chosen: list[Decision] = []
    if options.session:
        chosen.append("session")
    if options.always:
        chosen.append("always")
    if options.deny is not None:
        chosen.append("deny")
    if options.edit is not None:
        chosen.append("edit")
    if len(chosen) > 1:
        raise UsageError(f"--{' and --'.join(chosen)} do not go together: choose one")
    return chosen[0] if chosen else "once"


def _answer(options: ApproveOptions, approval: Approval) -> Answer:
    decision = _decision(options)
    arguments = edited_arguments(approval, options.edit) if options.edit is not None else None
    return Answer(decision, options.deny or "", arguments, options.rule or "")


def prompt_for(
    approval: Approval, read: Callable[[str], str] = input, say: Callable[[str], None] | None = None
) -> Answer:
    """Show a question, read lines until one is an answer, and answer it. Blocks.

    `read` is given the prompt and answers a line; `say` shows text, on standard error by default.
    Raises what `read` raises, such as `EOFError` when there is no more input.
    """
    show = say or _say
    show(f"{question_text(approval)}\n{choices_text(approval)}")
    while True:
        try:
            return answer_from(approval, read(PROMPT))
        except UsageError as error:
            show(str(error))


def approval_json(approval: Approval, *, parked: bool) -> dict[str, object]:
    """One approval as `--json` prints it."""
    try:
        arguments: object = json.loads(approval.arguments or "{}")
    except ValueError:
        arguments = approval.arguments
    return {
        "approval_id": approval.approval_id,
        "path": approval.path,
        "tool": approval.tool,
        "arguments": arguments,
        "why": approval.why,
        "rule": approval.rule,
        "asked_at": approval.asked_at,
        "run_id": approval.run_id,
        "root_id": approval.root_id,
        "session_id": approval.session_id,
        "root_session_id": approval.root_session_id,
        "status": approval.status,
        "parked": parked,
    }


async def _found(app: "App", wanted: str) -> Approval:
    """The approval of that id, or the only one that waits whose id begins so. Raises `UsageError`."""
    approval = await app.runs.approvals.approval(wanted)
    if approval is not None:
        return approval
    pending = await app.runs.approvals.pending()
    found = [each for each in pending if wanted and each.approval_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} approvals begin with {wanted!r}: write more of the id")
    raise UsageError(f"there is no approval {wanted[:80]!r}; `xclaw approve` lists those that wait")


def _print_list(app: "App", approvals: list[Approval], *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(
            {"approvals": [approval_json(each, parked=_is_parked(app, each)) for each in approvals]}
        )
        return
    from xclaw.cli.text import seconds

    for approval in approvals:
        age = seconds(max(0.0, time.time() - approval.asked_at))
        parked = (
            f"; parked, goes on with: xclaw resume {approval.root_id}" if _is_parked(app, approval) else ""
        )
        print(f"{approval.approval_id}  {age} ago{parked}")
        print(question_text(approval))
        print()
    if approvals:
        complain("answer with: xclaw approve ID [--session | --always | --deny REASON | --edit JSON]")
    else:
        complain("nothing waits for an answer")


def _print_answered(app: "App", approval: Approval, answer: Answer, *, as_json: bool) -> None:
    parked = _is_parked(app, approval)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(
            {**approval_json(approval, parked=parked), "status": "answered", "decision": answer.decision}
        )
        return
    print(question_text(approval))
    print(f"answered: {answer.decision}")
    if parked:
        complain(f"nothing drives the run now; it goes on with: xclaw resume {approval.root_id}")


def _is_parked(app: "App", approval: Approval) -> bool:
    return not app.journal.owner_alive(approval.owner)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
