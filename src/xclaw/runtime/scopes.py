"""The scope of a run: what it sees of itself, set around everything that is done for it."""

from xclaw.contracts.memory import whose_session
from xclaw.contracts.scope import Scope, current_scope
from xclaw.runtime.permissions import effective_mode
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Node, Tree


def enter_scope(services: Services, tree: Tree, node: Node) -> None:
    """For the task that calls it, and those that it starts: each has a context of its own, so nothing
    has to be reset."""
    started = node.log.state.started_event
    whose = whose_session(tree.session_id)
    memory = services.memory
    current_scope.set(
        Scope(
            node.run_id,
            tree.root_id,
            node.log.address.session_id,
            node.agent,
            node.depth,
            effective_mode(started.permissions) if started else "default",
            memory.agent_directory(node.agent, whose.user) if memory else services.memory_root,
            whose.user,
            whose.conversation,
        )
    )
