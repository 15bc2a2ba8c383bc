"""`xclaw serve`: the gateway, in front or in the background; where it is; ending it."""

import asyncio
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw import __version__
from xclaw.cli.failures import DONE, FAILED, complain
from xclaw.cli.options import ServeOptions
from xclaw.cli.streams import let_go_of_stdout
from xclaw.contracts.errors import UsageError, XclawError

if TYPE_CHECKING:
    from xclaw.gateway.lock import HeldLock, Running
    from xclaw.settings import Settings

POLL_S = 0.05
SPARE_S = 20.0
"""How much longer than its drain a gateway may take to end."""


def serve(options: ServeOptions) -> int:
    """Serve until told to stop; or start, stop or find the gateway of this home."""
    from xclaw.cli.opening import run_to_end, settings_from

    if options.background + options.stop + options.status > 1:
        raise UsageError("--background, --stop and --status exclude each other. Leave all but one out.")
    settings = settings_from(options.overrides())
    if options.status:
        return _status(settings, as_json=options.as_json)
    if options.stop:
        return run_to_end(_stop(settings, as_json=options.as_json))
    if options.background:  # what it starts takes over like one in front
        return run_to_end(_in_background(settings, options))
    if options.idle_exit is not None:
        settings = replace(settings, gateway=replace(settings.gateway, idle_exit_s=options.idle_exit))
    return run_to_end(_serve(settings, options))


def process_flags(options: ServeOptions) -> dict[str, str]:
    """The flags that hold for a gateway's whole process, as it tells them to its clients."""
    given = {
        "--dialect": options.dialect,
        "--worker-timeout": None if options.worker_timeout is None else f"{options.worker_timeout:g}",
        "--allow-shell": "on" if options.allow_shell else None,
        "--mode": options.mode,
        "--sandbox": options.sandbox,
        "--project": options.project,
        "--coordinator": "on" if options.coordinator else None,
        "--idle-exit": None if options.idle_exit is None else f"{options.idle_exit:g}",
    }
    return {flag: value for flag, value in given.items() if value is not None}


def sources_of(settings: "Settings") -> tuple[str, ...]:
    """The settings files and folders of agents that there are."""
    folders = [folder for folder in settings.agents.directories if Path(folder).is_dir()]
    return (*map(str, settings.files), *folders)


async def _serve(settings: "Settings", options: ServeOptions) -> int:
    from xclaw.app import open_gateway
    from xclaw.cli.gateway_finder import token_book
    from xclaw.cli.serve_log import ServeLog, told_in_json
    from xclaw.gateway.channels.plugins import load_channel
    from xclaw.gateway.lock import hold
    from xclaw.gateway.serving import serve as serve_gateway

    log = ServeLog(verbose=options.verbose)
    if options.idle_exit is None:
        await _take_over(settings)
    with hold(settings.home, Path(settings.gateway.state_file)) as lock, log.collecting():
        tokens = token_book(settings)
        token, made = tokens.ensure()
        channels = [load_channel(name) for name in options.channel]
        if options.as_json:
            progress = told_in_json
        else:
            from xclaw.cli.preparing import PreparationProgress

            progress = PreparationProgress()
        _prepare_workspace(settings)
        if options.as_json:
            await _prepare_model(settings)
        async with open_gateway(settings, progress) as opened:
            for warning in opened.app.warnings:
                complain(f"warning: {warning}")

            def on_ready(url: str) -> None:
                running = _announce(lock, url, settings, options)
                _say_ready(running, options, token if made else "")

            opened.app.runs.subscribe(log.receive)
            await serve_gateway(opened.gateway, tokens, channels, on_ready=on_ready)
    return DONE


async def _take_over(settings: "Settings") -> None:
    """End a gateway that is there only until nobody needs it. Its clients and its runs come over here."""
    from xclaw.cli.gateway_finder import settled

    running = await settled(settings)
    if running is not None and "--idle-exit" in running.options:
        complain(f"taking over from the gateway that a chat started (process {running.pid})")
        await _end_and_wait(settings, running)


def _prepare_workspace(settings: "Settings") -> None:
    from xclaw.cli.opening import usable_workspace

    usable_workspace(settings)


async def _prepare_model(settings: "Settings") -> None:
    """The embedded model, if it answers first, while whoever started this process shows that it takes
    its time. What goes wrong is told by the first call again."""
    from xclaw.cli.serve_log import told_in_json
    from xclaw.models.embedded.weights import ensure_weights

    if next(iter(settings.models.chain), "").partition(":")[0] != "local":
        return
    try:
        await ensure_weights(settings.embedded, told_in_json)
    except XclawError as error:
        complain(f"the embedded model is not ready: {error}")


def _announce(lock: "HeldLock", url: str, settings: "Settings", options: ServeOptions) -> "Running":
    return lock.announce(
        url,
        workspace=settings.workspace.root,
        version=__version__,
        options=process_flags(options),
        sources=sources_of(settings),
    )


def _say_ready(running: "Running", options: ServeOptions, new_token: str) -> None:
    """The address; a token that was made just now is shown this once."""
    with _output_may_be_gone():
        if options.as_json:
            from xclaw.cli.output import print_json

            print_json({"event": "ready", **_form(running)})
            return
        print(f"xclaw listens on {running.url}, workspace {running.workspace}", flush=True)
        if new_token:
            print(f"its token, which is not shown again: {new_token}", flush=True)


@contextmanager
def _output_may_be_gone() -> Generator[None]:
    """Nobody needs to read what a service prints."""
    try:
        yield
    except OSError:
        let_go_of_stdout()


async def _in_background(settings: "Settings", options: ServeOptions) -> int:
    from xclaw.cli.gateway_finder import log_of, settled, start, token_book

    _, made = token_book(settings).ensure()
    running = await settled(settings)
    if running is not None and "--idle-exit" not in running.options:
        raise UsageError(
            f"a gateway runs already: {running.url}, process {running.pid}. Stop it: xclaw serve --stop"
        )
    running = await start(settings, flags_of(options)) or await settled(settings)
    if running is None:
        raise XclawError(f"the gateway stopped as soon as it had started. {log_of(settings)} says why.")
    if options.as_json:
        from xclaw.cli.output import print_json

        print_json({"event": "ready", **_form(running)})
        return DONE
    print(f"xclaw listens on {running.url}, process {running.pid}, log {log_of(settings)}")
    if made:
        print(f"its token is in {settings.gateway.token_file}")
    return DONE


def flags_of(options: ServeOptions) -> list[str]:
    """The arguments that make another `xclaw serve` do the same in front."""
    pairs = {
        "--host": options.host,
        "--port": options.port,
        "--workspace": options.workspace,
        "--worker-timeout": options.worker_timeout,
        "--dialect": options.dialect,
        "--mode": options.mode,
        "--sandbox": options.sandbox,
        "--project": options.project,
        "--idle-exit": options.idle_exit,
    }
    flags = [f"{flag}={value}" for flag, value in pairs.items() if value is not None]
    flags += [f"--model={model}" for model in options.model]
    flags += [f"--channel={channel}" for channel in options.channel]
    switches = {
        "--allow-shell": options.allow_shell,
        "--coordinator": options.coordinator,
        "--verbose": options.verbose,
    }
    return flags + [flag for flag, on in switches.items() if on]


def _status(settings: "Settings", *, as_json: bool) -> int:
    from xclaw.cli.gateway_finder import running_gateway

    running = running_gateway(settings)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"running": running is not None, **(_form(running) if running else {})})
    elif running is None:
        print("no gateway runs in this home")
    elif not running.ready:
        print("the gateway of this home is starting")
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(running.started_at))
        print(f"xclaw {running.version} listens on {running.url} since {since}, process {running.pid}")
        flags = "".join(f", {flag} {value}" for flag, value in running.options.items())
        print(f"workspace {running.workspace}{flags}")
    return DONE if running is not None else FAILED


async def _stop(settings: "Settings", *, as_json: bool) -> int:
    """End the gateway of this home, and wait until it is gone."""
    from xclaw.cli.gateway_finder import settled

    running = await settled(settings)
    if running is not None:
        await _end_and_wait(settings, running)
    if as_json:
        from xclaw.cli.output import print_json

        print_json({"stopped": running is not None, "pid": running.pid if running else None})
    elif running is None:
        print("no gateway runs in this home")
    else:
        print(
            f"the gateway (process {running.pid}) has stopped; what it had not finished goes on at its next start"
        )
    return DONE


async def _end_and_wait(settings: "Settings", running: "Running") -> None:
    """Raises `XclawError` for a gateway that does not end."""
    from xclaw.cli.gateway_finder import log_of

    try:
        with suppress(ProcessLookupError):  # it was quicker
            os.kill(running.pid, signal.SIGTERM)
        async with asyncio.timeout(settings.gateway.drain_s + SPARE_S):
            await _gone(settings, running.pid)
    except TimeoutError:
        raise XclawError(
            f"the gateway (process {running.pid}) has not stopped yet. {log_of(settings)} may say why; "
            f"nothing is lost by kill -9 {running.pid}"
        ) from None


async def _gone(settings: "Settings", pid: int) -> None:
    from xclaw.cli.gateway_finder import running_gateway

    while True:
        running = running_gateway(settings)
        if (running is None and not _lives(pid)) or (running is not None and running.pid not in (0, pid)):
            return
        await asyncio.sleep(POLL_S)


def _lives(pid: int) -> bool:
    """Whether a process is there that has not ended; one whose parent has not noticed its end has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def _form(running: "Running") -> dict[str, object]:
    return {
        "url": running.url,
        "pid": running.pid,
        "workspace": running.workspace,
        "version": running.version,
        "started_at": running.started_at,
        "options": running.options,
    }
