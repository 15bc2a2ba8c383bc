"""`xclaw team`: the experts that stay with a session, what they last did and what they remember."""

from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.options import TeamOptions
from xclaw.cli.run import checked_session
from xclaw.cli.session_lines import resident_lines
from xclaw.cli.text import one_line
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.cli.desk_access import Desk
    from xclaw.cli.gateway_api import JsonValue


def team(options: TeamOptions) -> int:
    """Show the team, or let one of it forget; answers the exit code."""
    from xclaw.cli.desk_access import at_desk
    from xclaw.cli.opening import settings_of_workspace

    session = checked_session("cli" if options.session is None else options.session)
    settings = settings_of_workspace(options.workspace)

    async def body(desk: "Desk") -> int:
        if options.reset is not None:
            await desk.reset(session, options.reset)
        rows = await _team(desk, session, was_there=options.reset is not None)
        if options.as_json:
            from xclaw.cli.output import print_indented

            print_indented({"session": session, "team": rows})
            return DONE
        if options.reset is not None:
            print(f"{one_line(options.reset, 40)} remembers nothing of {one_line(session, 40)!r} any more")
        for row in rows:
            print("\n".join(resident_lines(row)))
        if not rows and options.reset is None:
            print(f"no expert was asked in session {one_line(session, 40)!r} yet")
        return DONE

    return at_desk(settings, body)


async def _team(desk: "Desk", session: str, *, was_there: bool) -> "JsonValue":
    """A session in which only one expert was asked, who forgot it, is gone."""
    try:
        return await desk.team(session)
    except UsageError:
        if was_there:
            return []
        raise
