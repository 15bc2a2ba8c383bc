"""From settings to a router."""

from collections.abc import Mapping
from typing import Protocol

from xclaw.contracts.errors import UsageError
from xclaw.contracts.models import ModelSource
from xclaw.gateway.routing.examples import examples_of, packaged_examples
from xclaw.gateway.routing.model_router import ModelRouter
from xclaw.gateway.routing.router import ORCHESTRATOR, Router
from xclaw.gateway.routing.rules import RuleBook, load_rules
from xclaw.gateway.routing.settings import RouterSettings
from xclaw.gateway.routing.similarity import Similarity, is_installed


class Roster(Protocol):
    """Who may be routed to."""

    def resolve(self, name: str) -> str | None: ...

    def roster(self) -> Mapping[str, str]: ...


def build_router(
    settings: RouterSettings, agents: Roster, models: ModelSource, front: str = ORCHESTRATOR
) -> Router:
    """A router over all agents but orchestrators. Nothing is loaded that the settings do not ask for.

    `front`: who answers what goes to no expert. Another one than the orchestrator answers everything that is
    addressed to nobody by name.

    Raises `UsageError` for rules that are wrong, and for a router model that is not named or not known.
    """
    book = load_rules(settings.rules_files)
    if front != ORCHESTRATOR:
        return Router(book, agents.roster(), agents.resolve, (), front=front)
    model = _model_router(settings, book, models) if "model" in settings.order else None
    return Router(book, agents.roster(), agents.resolve, settings.order, model)


def _model_router(settings: RouterSettings, book: RuleBook, models: ModelSource) -> ModelRouter:
    if not settings.model:
        raise UsageError(
            '`router.order` names "model", and `router.model` says none. Set it to a `provider:model`, '
            "or to `local` for the embedded one."
        )
    model = models((settings.model,))
    if not model.profile.few_shots:
        return ModelRouter(model, timeout_s=settings.timeout_s)
    similarity = Similarity(examples_of(book)) if is_installed() else None
    return ModelRouter(
        model, shots=packaged_examples().shots, timeout_s=settings.timeout_s, similarity=similarity
    )
