"""What the calls of a team's members, and the call that made the team, can do with it."""

from collections.abc import Mapping

from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.team_events import MailSent
from xclaw.contracts.teams import Seat, TeamTask, Waited
from xclaw.loop.exchange import Exchange
from xclaw.loop.state import RunState, fold
from xclaw.runtime.children import Children
from xclaw.runtime.clocks import stopped_clock
from xclaw.runtime.mail import as_message, turn_id
from xclaw.runtime.team import Place, Team
from xclaw.runtime.team_board import Board
from xclaw.runtime.tree import Node, without_slot


class MemberPort:
    """Implements `contracts.teams.Membership` for one call of one member."""

    def __init__(self, children: Children, call_id: str) -> None:
        lead = children.node.parent
        if lead is None or children.team is None or children.place is None:
            raise SpawnRefused("you are in no team")
        self._children = children
        self._call_id = call_id
        self._team = children.team
        self._place: Place = children.place
        self._board = board_of(lead, children.team)
        self.seat: Seat = children.place.seat

    async def wait_for_mail(self, timeout_s: float | None, sender: str = "") -> Waited:
        node = self._children.node
        with stopped_clock(node):
            async with without_slot(self._children.tree, node):
                return await self._team.wait_for_mail(self._place, timeout_s, sender)

    def tasks(self) -> tuple[TeamTask, ...]:
        return tuple(self._board.tasks().values())

    def add(self, text: str, after: tuple[str, ...] = ()) -> TeamTask:
        return self._board.add(self.seat.member, self._call_id, text, after)

    def claim(self, task_id: str) -> TeamTask:
        return self._board.claim(self.seat.member, self._call_id, task_id)

    def complete(self, task_id: str, note: str = "") -> TeamTask:
        return self._board.complete(self.seat.member, self._call_id, task_id, note)

    def release(self, task_id: str) -> TeamTask:
        return self._board.release(self.seat.member, self._call_id, task_id)


class LeadPort:
    """Implements `contracts.teams.TeamLead` for the call that made a team."""

    def __init__(self, children: Children, call_id: str) -> None:
        self._children = children
        self._call_id = call_id

    @property
    def _team(self) -> Team:
        spawned = self._children.node.log.state.children.values()
        seat = next((each.task.seat for each in spawned if each.call_id == self._call_id), None)
        if seat is None:
            raise SpawnRefused("this call has started no team")
        return self._children.tree.team(self._children.node, self._call_id, seat.strategy)

    def assembled(self) -> None:
        self._team.is_assembled = True
        self._team.check()

    async def turn(self, run_id: str, number: int, text: str = "") -> str:
        tree = self._children.tree
        self._tell(run_id, number, text)
        node = tree.nodes.get(run_id)
        if node is None:
            return _answer(self._state(run_id).exchange, run_id, number)
        place = self._team.places.get(self._member(run_id))
        while node.result is None and not _has_answered(node.log.state.exchange, place, run_id, number):
            assert place is not None
            place.moved.clear()
            await place.moved.wait()
        return _answer(node.log.state.exchange, run_id, number)

    def _tell(self, run_id: str, number: int, text: str) -> None:
        """Once, also over a crash: what was sent and not read is delivered again by itself."""
        lead, mail_id = self._children.node, turn_id(run_id, number)
        node = self._children.tree.nodes.get(run_id)
        if number == 1 or mail_id in lead.log.state.exchange.sent or node is None or node.result is not None:
            return
        mail = MailSent(mail_id, run_id, text, "agent")
        lead.log.record(mail)
        if node.steer is not None:
            node.steer(as_message(mail))

    def dismiss(self) -> None:
        self._team.end()

    def answer(self, run_id: str, passing: str) -> str:
        own = [
            text for text in self._state(run_id).exchange.answers if text.strip() and text.strip() != passing
        ]
        return own[-1] if own else ""

    def traffic(self) -> Mapping[tuple[str, str], int]:
        counts: dict[tuple[str, str], int] = {}
        names = {run_id: name for name, run_id in self._team.members.items()}
        names[self._children.node.run_id] = "lead"
        for run_id, name in names.items():
            for mail in self._state(run_id).exchange.sent.values():
                if mail.sender and mail.to_run_id in names:
                    pair = (name, names[mail.to_run_id])
                    counts[pair] = counts.get(pair, 0) + 1
        return counts

    def tasks(self) -> tuple[TeamTask, ...]:
        return tuple(board_of(self._children.node, self._team).tasks().values())

    def _state(self, run_id: str) -> RunState:
        tree = self._children.tree
        node = tree.nodes.get(run_id)
        return node.log.state if node else fold(tree.past.get(run_id, []))

    def _member(self, run_id: str) -> str:
        return next(name for name, member in self._team.members.items() if member == run_id)


def board_of(lead: Node, team: Team) -> Board:
    return Board(lead.log.state, team.call_id, lead.log.record, team.outcome)


def _has_answered(exchange: Exchange, place: Place | None, run_id: str, number: int) -> bool:
    if turn_id(run_id, number + 1) in exchange.answered_before:
        return True
    has_read = number == 1 or turn_id(run_id, number) in exchange.answered_before
    return has_read and place is not None and place.standing == "answered"


def _answer(exchange: Exchange, run_id: str, number: int) -> str:
    """What was answered to a turn: the last text before the next one, if it came after this one."""
    read = 0 if number == 1 else exchange.answered_before.get(turn_id(run_id, number), len(exchange.answers))
    answers = exchange.answers[read : exchange.answered_before.get(turn_id(run_id, number + 1))]
    return answers[-1] if answers else ""
