"""`xclaw trace --otlp`: export what the journal has over OpenTelemetry."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, FAILED, complain
from xclaw.cli.opening import settings_of_workspace, with_app
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.app import App


def export_trace(
    run: str | None, endpoint: str | None, session: str | None, workspace: str | None, *, prompts: bool
) -> int:
    """Export one tree, or all trees of a session, to `endpoint` or where the settings say.

    A first argument that is an address is the endpoint: `xclaw trace --otlp http://localhost:4318`.
    """
    if endpoint is None and run is not None and "://" in run:
        run, endpoint = None, run
    settings = settings_of_workspace(workspace)
    traces = replace(
        settings.traces,
        otlp_endpoint=endpoint or settings.traces.otlp_endpoint,
        include_content=prompts or settings.traces.include_content,
    )
    if not traces.otlp_endpoint:
        raise UsageError(
            "there is no endpoint to export to. Name one: xclaw trace RUN --otlp http://localhost:4318, "
            "or set OTEL_EXPORTER_OTLP_ENDPOINT."
        )

    async def body(app: "App") -> int:
        from xclaw.cli.trace import chosen_trees
        from xclaw.traces.otel_export import Exporter, shown_url

        trees = await chosen_trees(app, run or "last", session)
        exporter = Exporter(traces)
        for entries in trees:
            count, failure = await asyncio.to_thread(exporter.export, entries)
            if failure:
                complain(f"not exported to {shown_url(exporter.url)}: {failure}")
                return FAILED
            print(f"{count} spans of {entries[0].address.root_id} exported to {shown_url(exporter.url)}")
        exporter.close()
        return DONE

    return with_app(settings, body)
