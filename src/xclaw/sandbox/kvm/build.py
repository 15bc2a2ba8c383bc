"""`xclaw sandbox build`: an image from Debian packages, by the apt sources that this machine has.

Whatever is killed on the way leaves a directory whose name begins with a dot: it never passes for an
image, and the next build removes it.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from xclaw.contracts.errors import SandboxUnavailable
from xclaw.sandbox.kvm.image import (
    FILES,
    MANIFEST,
    PACKAGES,
    Image,
    base_recipe,
    check_image,
    guest_files,
    images,
    recipe,
    write_manifest,
)
from xclaw.sandbox.kvm.kernel import base_archive, needed_modules, own_archive, unwrapped_kernel

KERNEL = "linux-image-amd64"
BUSYBOX = "busybox-static"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TOOLS = {
    "apt-get": "apt",
    "apt-cache": "apt",
    "dpkg-deb": "dpkg",
    "mmdebstrap": "mmdebstrap",
    "sqfstar": "squashfs-tools",
}
"""Programs that building needs, and the packages that they are in."""
_BUILDING = ".building-"
_KEPT_LINES = 12
_WITHOUT = ("usr/share/man", "usr/share/doc", "usr/share/locale", "usr/share/info", "usr/share/lintian")
_OUTSIDE = "xclaw-packages"
"""The folder of the root in which packages lie that do not belong to it."""
# What follows $1, the new root, is part of the recipe: change `_RECIPE` of image.py with it.
_FETCH = (
    'set -e; mkdir -p "$1/{folder}"; cd "$1/{folder}"; '
    "export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG; "
    "real=$(apt-cache depends {kernel} | sed -n 's/^ *Depends: *\\(linux-image-[^ ]*\\)$/\\1/p' | head -n 1); "
    'apt-get -q download "${{real:-{kernel}}}" {busybox}'
)
_FORGET = (
    'rm -f "$1/etc/resolv.conf" "$1/etc/machine-id"; printf "sandbox\\n" > "$1/etc/hostname"; '
    'printf "127.0.0.1 localhost sandbox\\n" > "$1/etc/hosts"; : > "$1/etc/resolv.conf"'
)
_LEFT_OUT = (
    _OUTSIDE, "etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/apt.conf.d", "var/cache/apt", "var/lib/apt",
    "var/log/apt", "var/log/dpkg.log", "var/log/alternatives.log", "var/log/bootstrap.log",
)  # fmt: skip
"""What says where this machine gets its packages from, and what nobody needs in the guest."""

Tell = Callable[[str], None]


def build_image(image_dir: Path, tell: Tell) -> Image:
    """The image of this recipe and of the packages' present versions; made unless it is there.

    Raises:
        SandboxUnavailable: it cannot be built here; the text says what to do.
    """
    _refuse_without_means()
    try:
        image_dir.mkdir(parents=True, exist_ok=True)
        with _locked(image_dir, tell):
            return _build_locked(image_dir, tell)
    except OSError as error:
        raise SandboxUnavailable(f"the image cannot be built in {image_dir}: {error}.") from error


def _refuse_without_means() -> None:
    if platform.machine() not in ("x86_64", "amd64"):
        raise SandboxUnavailable(
            f"images are built for x86_64 only, and this machine is {platform.machine()}. "
            "Use another sandbox: bubblewrap."
        )
    missing = sorted({package for program, package in TOOLS.items() if shutil.which(program) is None})
    if "apt" in missing:
        raise SandboxUnavailable(
            "images are built from Debian's packages, and this machine has no apt. "
            "Build one on a Debian machine and copy it here, or use another sandbox: bubblewrap."
        )
    if missing:
        raise SandboxUnavailable(f"building needs more: `apt-get install {' '.join(missing)}`, as root.")


@contextmanager
def _locked(image_dir: Path, tell: Tell) -> Generator[None]:
    """One build at a time; whoever is second finds what the first made."""
    with (image_dir / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_locked(image_dir: Path, tell: Tell) -> Image:
    began = time.monotonic()
    for left in image_dir.glob(f"{_BUILDING}*"):
        shutil.rmtree(left, ignore_errors=True)
    versions = package_versions(tell)
    wanted = image_dir / f"{recipe()}-{versions}"
    there = {image.directory: (image, base) for image, base in images(image_dir)}
    if wanted in there:
        try:
            check_image(there[wanted][0])
        except SandboxUnavailable:
            tell("the image is damaged and is built again")
            _remove(wanted)
        else:
            return there[wanted][0]
    building = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=image_dir))
    try:
        kernel = _reused_base(there, versions, building, tell) or _new_base(building, tell)
        tell("initrd")
        own = own_archive(*guest_files())
        (building / "initrd").write_bytes((building / "base.cpio").read_bytes() + own)
        tell("checksums")
        write_manifest(building, recipe(), versions, kernel, datetime.now(UTC).isoformat(timespec="seconds"))
        for path in building.iterdir():
            path.chmod(0o644)
        building.chmod(0o755)
        os.rename(building, wanted)  # noqa: PTH104  # beside its namesake in the docs of rename(2)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    tell(f"done in {time.monotonic() - began:.0f} s")
    image = next(image for image, _ in images(image_dir) if image.directory == wanted)
    check_image(image)
    for old in there:  # machines that run hold its files open
        _remove(old)
    return image


def _remove(directory: Path) -> None:
    """The manifest goes first: what is half removed is no image."""
    (directory / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def _reused_base(
    there: dict[Path, tuple[Image, str]], versions: str, building: Path, tell: Tell
) -> str | None:
    """Take over the slow part of another image, if it is the same; answers the kernel's version."""
    for image, base in there.values():
        if base != base_recipe() or image.versions != versions:
            continue
        try:
            check_image(image)
        except SandboxUnavailable:
            continue
        tell("packages are the same as those of an older image")
        for name in FILES:
            if name != "initrd":
                (building / name).hardlink_to(image.directory / name)
        return image.kernel
    return None


def _new_base(building: Path, tell: Tell) -> str:
    tell("root file system, which takes about a minute")
    tree = building / "root.tar"
    _bootstrap(tree, tell)
    packages = building / "packages"
    packages.mkdir()
    _run(
        [
            "tar",
            "-xf",
            str(tree),
            "-C",
            str(packages),
            "--no-same-owner",
            "--strip-components=2",
            f"./{_OUTSIDE}",
        ],
        "the packages cannot be taken out",
        tell,
    )
    tell("squashfs")
    with tree.open("rb") as content:
        squash = [
            "sqfstar",
            "-comp",
            "lz4",
            "-no-progress",
            "-quiet",
            "-b",
            "128K",
            str(building / "rootfs.sqfs"),
            *_LEFT_OUT,
        ]
        _run(squash, "the file system cannot be made", tell, stdin=content.fileno())
    tree.unlink()
    tell("kernel")
    kernel = _unpacked(next(packages.glob("linux-image-*.deb")), packages / "kernel", tell)
    busybox = _unpacked(next(packages.glob("busybox-static*.deb")), packages / "busybox", tell)
    image = next((kernel / "boot").glob("vmlinuz-*"))
    (building / "vmlinux").write_bytes(unwrapped_kernel(image.read_bytes()))
    program = next(path for path in busybox.rglob("busybox") if path.is_file() and path.parent.name == "bin")
    (building / "base.cpio").write_bytes(base_archive(needed_modules(kernel / "lib"), program.read_bytes()))
    version = image.name.removeprefix("vmlinuz-")
    shutil.rmtree(packages)
    return version


def _unpacked(package: Path, to: Path, tell: Tell) -> Path:
    _run(["dpkg-deb", "-x", str(package), str(to)], f"{package.name} cannot be unpacked", tell)
    return to


def _bootstrap(tree: Path, tell: Tell) -> None:
    """The root as an archive. As root in namespaces of its own, so that whatever kills it leaves no mounts."""
    root = os.geteuid() == 0
    fetch = _FETCH.format(folder=_OUTSIDE, kernel=KERNEL, busybox=BUSYBOX)
    command = [
        "mmdebstrap", "--variant=minbase", f"--mode={'root' if root else 'unshare'}", "--format=tar",
        f"--include={','.join(PACKAGES)}",
        '--aptopt=Acquire::Languages "none"', "--aptopt=Acquire::Retries \"3\"",
        "--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude=/{folder}/*" for folder in _WITHOUT),
        f"--customize-hook={fetch}", f"--customize-hook={_FORGET}",
        "", str(tree), "-",
    ]  # fmt: skip
    if root:
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        # What it leaves when it is killed is removed with the directory that it builds in.
        command = [*alone, "env", f"TMPDIR={tree.parent}", *command]
    _run(
        ["setpriv", "--pdeathsig", "KILL", *command],
        "the packages cannot be installed"
        if root
        else "the packages cannot be installed without being root (mmdebstrap needs newuidmap and entries for "
        "this user in /etc/subuid and /etc/subgid); run `xclaw sandbox build` as root",
        tell,
        text=debian_sources(),
    )


def debian_sources() -> str:
    """What this machine's apt is told about Debian itself, as one-line sources.

    Raises:
        SandboxUnavailable: it knows no Debian.
    """
    keys = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    lines: list[str] = []
    for line in _asked(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)",
            "Created-By: Packages",
        ]
    ).splitlines():
        origin, uri, release, component = [*line.split("|"), "", "", "", ""][:4]
        if origin == "Debian" and component == "main":
            lines.append(f"deb {keys}{uri} {release} {component}")
    if not lines:
        raise SandboxUnavailable(
            "images are built from Debian's packages, and apt knows of none here. On Debian, run "
            "`apt-get update` as root; elsewhere use another sandbox: bubblewrap."
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"


def package_versions(tell: Tell) -> str:
    """The versions that apt would install now, in short. As root, lists that are missing are fetched.

    Raises:
        SandboxUnavailable: there are none.
    """
    wanted = (*PACKAGES, KERNEL, BUSYBOX)
    found = _candidates(wanted)
    if len(found) < len(wanted) and os.geteuid() == 0:
        tell("package lists")
        _run(["apt-get", "-q", "update"], "the package lists cannot be fetched", tell)
        found = _candidates(wanted)
    if missing := [name for name in wanted if name not in found]:
        raise SandboxUnavailable(
            f"apt knows no package {missing[0]}. Run `apt-get update` as root; images are built from Debian's "
            "packages."
        )
    text = "\n".join(f"{name} {found[name]}" for name in wanted)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _candidates(names: tuple[str, ...]) -> dict[str, str]:
    text = _asked(["apt-cache", "policy", *names])
    pairs = re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: (\S+)$", text, re.MULTILINE)
    return {name: version for name, version in pairs if version != "(none)"}


def _asked(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, env=_environment(), stdin=subprocess.DEVNULL, check=False
    )
    return done.stdout


def _environment() -> dict[str, str]:
    """What the tools see of this process's environment: no keys."""
    kept = ("PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy")
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
    } | {name: os.environ[name] for name in kept if name in os.environ}


def _run(command: list[str], failed: str, tell: Tell, *, text: str = "", stdin: int | None = None) -> None:
    """Raises `SandboxUnavailable`, with what the command said last."""
    with tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        with subprocess.Popen(
            command,
            stdin=given if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
        ) as process:
            assert process.stdout is not None
            last: deque[str] = deque(maxlen=_KEPT_LINES)
            try:
                for line in process.stdout:
                    last.append(line.decode("utf-8", "replace").rstrip()[:300])
                    if last[-1].startswith("I: ") and "hook" not in last[-1]:
                        tell(f"  {last[-1][3:83].rstrip('.')}")
            except BaseException:
                process.kill()
                raise
    if process.returncode != 0:
        raise SandboxUnavailable(f"{failed}. {command[0]} said:\n" + "\n".join(last))
