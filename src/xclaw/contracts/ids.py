"""How runs, tasks and sessions are named. Ids of children derive from what asked for them, so a
replay names the same child again."""

import hashlib
import secrets
import time

TASK_ID_LENGTH = 6
"""Hex digits of a task id; unique in its session."""


def new_run_id() -> str:
    """A fresh run id: sorts by creation time, cannot be guessed."""
    return f"r{time.time_ns() // 1_000_000:011x}{secrets.token_hex(5)}"


def child_run_id(parent_run_id: str, call_id: str, key: str) -> str:
    """The id of the child that `call_id` of the parent asked for under `key`.

    `key` tells the children of one call apart ("0", "coder:round1", "step2", ...).
    """
    digest = hashlib.sha256(f"{parent_run_id}\0{call_id}\0{key}".encode()).hexdigest()
    return f"c{digest[:21]}"


def task_id_from(run_id: str, attempt: int = 0) -> str:
    """Six hex digits for a child run; `attempt` counts up on a collision in the session."""
    return hashlib.sha256(f"{run_id}\0{attempt}".encode()).hexdigest()[:TASK_ID_LENGTH]


def new_session_id(channel: str, client_session_id: str | None = None) -> str:
    """The session a message of `channel` belongs to (SPEC A3)."""
    if client_session_id:
        return client_session_id
    if channel == "cli":
        return "cli"
    return f"web-{secrets.token_urlsafe(16)}"


def delegate_session(session_id: str, worker: str, task_id: str) -> str:
    return f"{session_id}:{worker}:{task_id}"


def debate_session(session_id: str, worker: str, task_id: str) -> str:
    return f"{session_id}:debate:{worker}:{task_id}"


def pipeline_session(session_id: str, step: int, task_id: str) -> str:
    """`step` counts from 0."""
    return f"{session_id}:pipe:step{step}:{task_id}"


def teammate_session(session_id: str, team: str, worker: str, task_id: str) -> str:
    return f"{session_id}:team:{team}:{worker}:{task_id}"


def team_session(session_id: str, role: str) -> str:
    return f"team:{role}:{session_id}"
