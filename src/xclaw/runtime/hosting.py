"""The runtime's side of a run whose loop goes on in a worker process."""

from xclaw.contracts.workers import WorkerKind
from xclaw.loop.parts import Ending
from xclaw.runtime.assembly import Live
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Tree


class Hosting:
    def __init__(self, services: Services, tree: Tree, live: Live, kind: WorkerKind) -> None:
        self.live = live

    async def run(self) -> Ending:
        return Ending("error", "", "not there yet")
