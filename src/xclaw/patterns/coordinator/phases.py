"""One call of a phase's tool: whether it belongs where the work stands, and what it records of it, once."""

from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import PhaseChanged
from xclaw.contracts.plans import CheckRun, Phase, PlannedTask, Verdict
from xclaw.contracts.tools import ToolContext
from xclaw.patterns.coordinator.settings import CoordinatorSettings

BLOCKED = "blocked"


class PhaseCall:
    """Bound to one call. After a crash the same call goes on with what it had recorded."""

    def __init__(self, tool: str, context: ToolContext, settings: CoordinatorSettings) -> None:
        """Raises `ToolFailed` for a call that does not belong here; it says what does."""
        self._context = context
        self._settings = settings
        self.state = context.coordination()
        self._began = self.state.calls.get(context.call_id)
        self._total = 0
        self._ended: set[str] = {part for call, part in self.state.reported if call == context.call_id}
        if self._began is None:
            _refuse_second(tool, context)
            if tool not in self.state.offered:
                where = f"the work is in the phase {self.state.phase}"
                raise ToolFailed(f"{tool} does not belong here: {where}. Next: {self.state.next_step}")

    @property
    def is_replayed(self) -> bool:
        """A crash came after this very call had begun."""
        return self._began is not None

    @property
    def round(self) -> int:
        """The round that the call began in."""
        return self._began.round if self._began else self.state.round

    @property
    def rounds(self) -> int:
        return self._began.rounds if self._began else self._settings.max_rounds

    def begin(
        self, phase: Phase, total: int, *, plan: tuple[PlannedTask, ...] = (), round_: int | None = None
    ) -> None:
        """The phase begins, with so many parts."""
        self._total = total
        if self._began is None:
            self._began = PhaseChanged(
                phase, round_ or self.round, self.rounds, self._context.call_id, total=total, plan=plan
            )
            self._context.record(self._began)

    def part_ended(self, part: str, agent: str, outcome: str) -> None:
        """One part has ended, however it did."""
        if part in self._ended:
            return
        self._ended.add(part)
        began = self._began
        assert began is not None
        self._context.record(
            PhaseChanged(
                began.phase,
                began.round,
                began.rounds,
                began.call_id,
                done=len(self._ended),
                total=self._total,
                part=part,
                agent=agent,
                outcome=outcome,
            )
        )

    def end(
        self,
        phase: Phase,
        round_: int | None = None,
        *,
        verdict: Verdict | None = None,
        checks: tuple[CheckRun, ...] = (),
    ) -> None:
        """The phase is over; `phase` may begin."""
        if self._context.call_id in self.state.closed:
            return
        self._context.record(
            PhaseChanged(
                phase,
                round_ or self.round,
                self.rounds,
                self._context.call_id,
                verdict=verdict,
                checks=checks,
            )
        )

    def next_step(self) -> str:
        """What follows, from everything that the call has recorded and taken."""
        return self._context.coordination().next_step


def _refuse_second(tool: str, context: ToolContext) -> None:
    """Calls of one turn run at once; a phase waits for the one before it."""
    phases = [call.id for call in context.turn_calls if call.name in PHASE_TOOLS]
    if phases and phases[0] != context.call_id:
        raise ToolFailed(f"one phase at a time: call {tool} when the result of the first one is there")
