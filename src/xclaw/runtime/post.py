"""To whom a run may write, and how it gets there (SPEC G5, G6): its children, its lead, its team mates."""

from dataclasses import dataclass

from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.ids import child_run_id
from xclaw.contracts.messages import Origin
from xclaw.contracts.team_events import MailSent
from xclaw.contracts.teams import Seat
from xclaw.runtime.children import Children
from xclaw.runtime.mail import as_message
from xclaw.runtime.team import Team
from xclaw.runtime.tree import Node

LEAD = ("lead", "parent")
EVERYBODY = ("all", "everybody", "everyone", "team", "*")


@dataclass(frozen=True, slots=True)
class Letter:
    """One receiver of what is sent."""

    run_id: str
    name: str
    origin: Origin
    """"agent" gives instructions, to those below; anything else is data."""
    to: str = ""
    """As whom the receiver is addressed."""
    sender: str = ""


def receivers(children: Children, to: str) -> list[Letter] | None:
    """The lead or team mates that `to` means; None when it means neither, so a child perhaps.

    Raises `SpawnRefused` for somebody who cannot read it any more, and for oneself.
    """
    node, team, place = children.node, children.team, children.place
    word = to.strip().casefold()
    sender = sender_of(node)
    if word in LEAD and node.parent is not None:
        if node.parent.result is not None:
            raise SpawnRefused("the lead has ended")
        return [Letter(node.parent.run_id, "lead", "notification", "lead", sender)]
    names = _meant(children, place.seat, word) if place else None
    if team is None or names is None or node.parent is None:
        return None
    if team.is_over:
        raise SpawnRefused("the team has ended: nobody reads mail any more. Give your answer")
    readers = [name for name in names if not team.outcome(name)]
    if not readers:
        raise SpawnRefused(_nobody(team, names))
    addressed = "all" if word in EVERYBODY else ""
    lead_id = node.parent.run_id
    return [
        Letter(child_run_id(lead_id, team.call_id, name), name, "notification", addressed or name, sender)
        for name in readers
    ]


def deliver(children: Children, letter: Letter, mail_id: str, text: str) -> None:
    """Send it, once: the same id again is the same call, replayed after a crash."""
    node, tree = children.node, children.tree
    if mail_id in node.log.state.exchange.sent:
        return
    mail = MailSent(mail_id, letter.run_id, text, letter.origin, letter.sender, letter.to)
    node.log.record(mail)
    receiver = tree.nodes.get(letter.run_id)
    if receiver is not None and receiver.steer is not None:
        receiver.steer(as_message(mail))
    else:
        tree.mail.keep(mail)
    if letter.sender and children.team is not None:
        children.team.written()


def sender_of(node: Node) -> str:
    """As whom a run writes to its lead and its mates."""
    seat = _seat_of(node)
    return seat.member if seat else f"{node.agent} {node.task_id}"


def team_mates(node: Node) -> frozenset[str]:
    """Run ids of a member's team mates, also of those that have not been started yet."""
    started, seat = node.log.state.started_event, _seat_of(node)
    if node.parent is None or started is None or seat is None:
        return frozenset()
    lead, call_id = node.parent.run_id, started.parent_call_id
    return frozenset(child_run_id(lead, call_id, name) for name in seat.members if name != seat.member)


def _seat_of(node: Node) -> Seat | None:
    started = node.log.state.started_event
    return started.task.seat if started and started.task else None


def _meant(children: Children, seat: Seat, word: str) -> list[str] | None:
    """Team mates by name; by their agent's name where only one is of it."""
    mates = [name for name in seat.members if name != seat.member]
    if word in EVERYBODY:
        return mates
    if word == seat.member.casefold():
        raise SpawnRefused(f"you are {seat.member} yourself; your mates are {', '.join(mates) or 'none'}")
    exact = [name for name in mates if name.casefold() == word.removeprefix("@")]
    if exact:
        return exact
    agent = children.services.agents.resolve(word)
    of_agent = [name for name in mates if agent and name.split("#", 1)[0] == agent]
    if len(of_agent) > 1:
        raise SpawnRefused(f"{word[:80]!r} means several of your mates: {', '.join(of_agent)}")
    if of_agent or children.background:
        return of_agent or None
    raise SpawnRefused(f"{word[:80]!r} is no mate of yours; there are {', '.join(mates)}, all, lead")


def _nobody(team: Team, names: list[str]) -> str:
    told = ", ".join(f"{name} has ended ({team.outcome(name)})" for name in names)
    return told or "you have no mates"
