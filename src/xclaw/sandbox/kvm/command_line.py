"""How QEMU is started: a microvm without a network card, with directories and one line to the agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PORT = "xclaw"
"""Name of the virtio-serial port that the agent listens at."""
MEGABYTE = 1_048_576
OVERHEAD_MB = 224
"""Of the guest's own system and of /tmp, beside what commands may use."""


@dataclass(frozen=True, slots=True)
class Share:
    """A directory of the host that the guest can mount."""

    tag: str
    path: str
    writable: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """What one is made of."""

    accelerator: Literal["kvm", "tcg"]
    memory_bytes: int
    cpus: int
    image: str
    """Directory of the image, as QEMU sees it."""
    shares: Sequence[Share]
    line: int
    """Descriptor of the socket to the agent, as QEMU has it."""


def host_khz(cpuinfo: str) -> int:
    """The processor's frequency; 2 GHz where that is not told."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz":
            return max(int(float(value) * 1000), 100_000)
    return 2_000_000


def kernel_line(accelerator: Literal["kvm", "tcg"], khz: int) -> str:
    """An emulated machine that measures its clock against the old timer hangs there once in four times, so
    it is told; the guest's clock is then about right only, and nothing relies on it."""
    words = [
        "console=ttyS0",
        "quiet",
        "loglevel=3",
        "panic=-1",
        "reboot=t",
        "random.trust_cpu=on",
        "cgroup_no_v1=all",
    ]
    if accelerator == "tcg":
        words += [f"tsc_early_khz={khz}", "tsc=reliable", "no_timer_check", "mitigations=off"]
    return " ".join(words)


def command_line(program: str, machine: Machine) -> list[str]:
    """QEMU with its arguments."""
    fast = machine.accelerator == "kvm"
    image = Path(machine.image)
    memory = machine.memory_bytes // MEGABYTE + OVERHEAD_MB
    khz = 0 if fast else host_khz(Path("/proc/cpuinfo").read_text("utf-8", "replace"))
    words = [
        program, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-name", "xclaw-sandbox",
        "-M", "microvm,rtc=on,isa-serial=on", "-accel", "kvm" if fast else "tcg,tb-size=64",
        "-cpu", "host" if fast else "max,la57=off",
        "-m", str(memory), "-smp", str(machine.cpus),
        "-kernel", str(image / "vmlinux"), "-initrd", str(image / "initrd"),
        "-append", kernel_line(machine.accelerator, khz),
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-drive", f"id=root,file={image / 'rootfs.sqfs'},format=raw,if=none,readonly=on",
        "-device", "virtio-blk-device,drive=root",
        "-device", "virtio-rng-device",
        "-device", "virtio-serial-device",
        "-chardev", f"socket,id=line,fd={machine.line}",
        "-device", f"virtserialport,chardev=line,name={PORT}",
    ]  # fmt: skip
    for share in machine.shares:
        options = f"local,id={share.tag},path={share.path},security_model=none,multidevs=remap"
        words += ["-fsdev", options if share.writable else f"{options},readonly=on"]
        words += ["-device", f"virtio-9p-device,fsdev={share.tag},mount_tag={share.tag}"]
    return words
