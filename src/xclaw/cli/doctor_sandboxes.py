"""Which sandboxes work on this machine, and why others do not: each is started once."""

from typing import TYPE_CHECKING

from xclaw.cli.doctor_models import Finding
from xclaw.contracts.errors import SandboxUnavailable

if TYPE_CHECKING:
    from xclaw.settings import Settings


async def sandbox_findings(settings: "Settings") -> list[Finding]:
    """Each backend, and which one full mode uses. Only what was asked for and does not work is a problem."""
    from xclaw.sandbox.building import backends
    from xclaw.sandbox.choosing import choose, probe_all

    there = backends(settings.sandbox)
    probes = await probe_all(there)
    findings = [
        Finding(
            f"sandbox {probe.backend}",
            "ok" if probe.works and probe.backend != "host" else "note",
            probe.detail,
        )
        for probe in probes
    ]
    full = settings.workspace.mode == "full"
    try:
        chosen = await choose(settings.sandbox.backend, there)
    except SandboxUnavailable as failure:
        return [*findings, Finding("sandbox", "problem" if full else "note", str(failure))]
    used = "commands of agents run in it" if full else "used with `--mode full`"
    return [*findings, Finding("sandbox", "ok", f"{chosen.name}: {used}")]
