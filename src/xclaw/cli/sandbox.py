"""`xclaw sandbox`: which kinds of sandbox work here, and the image that virtual machines are started from."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, FAILED, complain
from xclaw.cli.opening import settings_of_workspace
from xclaw.cli.sandbox_options import SandboxOptions
from xclaw.cli.text import printable

if TYPE_CHECKING:
    from xclaw.sandbox.kvm.image import Image
    from xclaw.sandbox.settings import SandboxSettings

MEGABYTE = 1_000_000


def sandbox(options: SandboxOptions) -> int:
    """Answers 1 when `doctor` finds that what the settings ask for does not work."""
    settings = settings_of_workspace(options.workspace)
    for warning in settings.warnings:
        complain(f"warning: {warning}")
    if options.action == "build":
        return _build(settings.sandbox, as_json=options.as_json)
    return asyncio.run(_doctor(settings.sandbox, as_json=options.as_json))


def _build(settings: "SandboxSettings", *, as_json: bool) -> int:
    from xclaw.sandbox.kvm.build import build_image

    began = time.monotonic()

    def tell(line: str) -> None:
        complain(f"{time.monotonic() - began:5.0f} s  {printable(line)}")

    image = build_image(Path(settings.image_dir), tell)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(_json(image))
    else:
        size = image.size_bytes / MEGABYTE
        print(
            f"{printable(str(image.directory))}  ({size:.0f} MB, Linux {image.kernel}, built {image.built_at})"
        )
    return DONE


def _json(image: "Image") -> dict[str, object]:
    return {
        "directory": str(image.directory),
        "kernel": image.kernel,
        "built_at": image.built_at,
        "bytes": image.size_bytes,
    }


async def _doctor(settings: "SandboxSettings", *, as_json: bool) -> int:
    from xclaw.contracts.errors import SandboxUnavailable
    from xclaw.sandbox.building import backends
    from xclaw.sandbox.choosing import choose, probe_all

    there = backends(settings)
    probes = await probe_all(there)
    try:
        chosen = (await choose(settings.backend, there)).name
        reason = f"`{settings.backend}` means {chosen} here" if settings.backend == "auto" else ""
    except SandboxUnavailable as error:
        chosen, reason = "", str(error)
    if as_json:
        from xclaw.cli.output import print_indented

        rows = [{"backend": probe.backend, "works": probe.works, "detail": probe.detail} for probe in probes]
        print_indented(
            {"sandboxes": rows, "asked_for": settings.backend, "used": chosen or None, "reason": reason}
        )
    else:
        for probe in probes:
            print(f"{'works' if probe.works else 'no':6} {probe.backend:11} {printable(probe.detail)}")
        if reason:
            print(printable(reason))
    return DONE if chosen else FAILED
