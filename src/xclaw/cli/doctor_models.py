"""Whether each model of the chain could be asked. Asks for lists only, which no provider charges for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.models.catalog import ModelCatalog
    from xclaw.settings import Settings

Level = Literal["ok", "note", "problem"]
REACH_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. Only a "problem" makes the exit code 1."""

    name: str
    level: Level
    text: str


async def model_findings(settings: "Settings") -> list[Finding]:
    """The chain, each of its models, and the embedded model."""
    from xclaw.models.catalog import NO_MODEL

    chain = settings.models.chain
    if not chain:
        return [Finding("models", "problem", NO_MODEL), _embedded(settings)]
    source = next(row.source for row in settings.explain() if row.key == "models.chain")
    findings = [Finding("models", "ok", f"{', '.join(chain)} ({source})")]
    for name in dict.fromkeys(chain):
        provider, _, rest = name.partition(":")
        match provider:
            case "script":
                findings.append(_script(name, Path(rest)))
            case "local":
                findings.append(_embedded(settings, needed=True))
            case _:
                findings.append(await _wired(settings, name))
    is_shown = any(finding.name == "embedded model" for finding in findings)
    return findings if is_shown else [*findings, _embedded(settings)]


def _script(name: str, path: Path) -> Finding:
    from xclaw.testing.scripted_model import ScriptedModel

    try:
        ScriptedModel.from_file(path)
    except UsageError as error:
        return Finding(f"model {name}", "problem", str(error))
    return Finding(f"model {name}", "ok", "[scripted model]")


def _embedded(settings: "Settings", *, needed: bool = False) -> Finding:
    from xclaw.models.embedded.weights import status

    found = status(settings.embedded)
    if found.problem:
        return Finding("embedded model", "problem" if needed else "note", found.problem)
    state = "verified" if found.verified else "its parts are joined and checked at first use"
    return Finding("embedded model", "ok", f"installed, {state}; use it as `local`")


async def _wired(settings: "Settings", name: str) -> Finding:
    """A model behind HTTP: it is known, has a key, and its host takes the key."""
    from xclaw.models.catalog import ModelCatalog

    catalog = ModelCatalog(settings.models)
    try:
        catalog([name])
        address = _address(settings, name)
        if address is None:
            return Finding(f"model {name}", "ok", "known, and a key is set; its host was not asked")
        return Finding(f"model {name}", *await _asked(catalog, settings, name, address))
    except UsageError as error:
        return Finding(f"model {name}", "problem", str(error))
    finally:
        await catalog.close()


def _provider(name: str) -> str:
    from xclaw.models.providers import ALIASES

    provider = name.partition(":")[0].lower() if ":" in name else "openai"
    return ALIASES.get(provider, provider)


def _address(settings: "Settings", name: str) -> str | None:
    """Where the provider lists its models; None when it speaks another wire."""
    from xclaw.models.providers import PROVIDERS

    provider = _provider(name)
    own = settings.models.providers.get(provider)
    known = PROVIDERS.get(provider)
    base = (own.base_url if own else None) or (known.base_url if known else None)
    return f"{base.rstrip('/')}/models" if base else None


async def _asked(catalog: "ModelCatalog", settings: "Settings", name: str, address: str) -> tuple[Level, str]:
    import aiohttp

    own = settings.models.providers.get(_provider(name))
    headers = dict(own.headers) if own else {}
    if own and own.api_key:
        headers = {"Authorization": f"Bearer {own.api_key}", **headers}
    timeout = aiohttp.ClientTimeout(total=REACH_TIMEOUT_S)
    try:
        async with catalog.connections.session().get(address, headers=headers, timeout=timeout) as answer:
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return "problem", f"{address} does not answer: {str(error) or type(error).__name__}"
    if status in (401, 403):
        return "problem", f"{address} refuses the key (status {status})"
    if status >= 500:
        return "problem", f"{address} is out of order (status {status})"
    return "ok", f"{address} answers (status {status})"
