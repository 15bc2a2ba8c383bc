"""What any `Sandbox` must do with files (SPEC F3): keep them, put and get them, lead nowhere outside."""

import secrets

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import SandboxCommand
from xclaw.testing.sandbox_harness import POLICY, WAIT_S, OpenSandbox, SandboxCheck, refused, run_inside


async def check_the_workspace_stays(open_sandbox: OpenSandbox) -> None:
    """From command to command, and on the host."""
    async with open_sandbox(POLICY) as opened:
        await run_inside(opened.sandbox, "mkdir -p deep/er; echo kept >deep/er/file; pwd")
        assert (await run_inside(opened.sandbox, "cat deep/er/file")).output == b"kept\n"
        assert (opened.workspace / "deep/er/file").read_text() == "kept\n"
        command = SandboxCommand(("cat", "file"), WAIT_S, directory="/workspace/deep/er")
        output = bytearray()
        await opened.sandbox.exec(command, output.extend)
        assert output == b"kept\n"


async def check_input_can_be_read_only(open_sandbox: OpenSandbox) -> None:
    """Files that are put there later are seen; none can be changed, made or removed."""
    async with open_sandbox(POLICY) as opened:
        if not opened.is_isolated:
            return
        given = opened.input / f"given-{secrets.token_hex(4)}"
        given.write_text("handed on")
        given.chmod(0o666)
        script = (
            f"cat /input/{given.name}; echo no >/input/{given.name}; echo no >/input/new; rm -f /input/{given.name}; "
            f"chmod 777 /input; ln -s x /input/link; mv /input/{given.name} /input/moved; :"
        )
        said = await run_inside(opened.sandbox, f"({script}) 2>/dev/null")
        assert said.output == b"handed on"
        assert given.read_text() == "handed on"
        assert not {"new", "link", "moved"} & {path.name for path in opened.input.iterdir()}


async def check_files_are_put_and_got(open_sandbox: OpenSandbox) -> None:
    """Any bytes, in directories that are made, over what was there, up to a limit; the command sees them."""
    content = bytes(range(256)) * 500
    async with open_sandbox(POLICY) as opened:
        sandbox, name = opened.sandbox, f"put-{secrets.token_hex(4)}"
        await sandbox.put(f"{name}/a b/'file", content)
        assert await sandbox.get(f"/workspace/{name}/a b/'file") == content
        assert await sandbox.get(f"{name}/a b/'file", limit=10) == content[:10]
        await sandbox.put(f"{name}/a b/'file", b"")
        assert await sandbox.get(f"{name}/a b/'file") == b""
        await sandbox.put(f"/workspace/{name}/-n", b"dash")
        assert (await run_inside(sandbox, f"cat -- {name}/-n")).output == b"dash"


async def check_bad_paths_are_refused(open_sandbox: OpenSandbox) -> None:
    """Directories, pipes, nothing, other places: with a reason, in bounded time."""
    async with open_sandbox(POLICY) as opened:
        sandbox, name = opened.sandbox, f"bad-{secrets.token_hex(4)}"
        await run_inside(
            sandbox,
            f"mkdir -p {name}/dir; mkfifo {name}/pipe || ln -s /dev/zero {name}/pipe; echo x >{name}/file",
        )
        bad = (
            f"{name}/dir",
            f"{name}/pipe",
            f"{name}/file/below",
            "/workspace",
            "/",
            "",
            " ",
            "a\0b",
            "x" * 5000,
        )
        for path in bad:
            assert await refused(sandbox.get(path)), path
            assert await refused(sandbox.put(path, b"x")), path
        assert await refused(sandbox.get(f"{name}/none"))
        for path in ("/input/made", "/usr/made", "/proc/made", "/workspace/../usr/made"):
            assert await refused(sandbox.put(path, b"x")), path


async def check_paths_lead_nowhere_outside(open_sandbox: OpenSandbox) -> None:
    """By links or dots: what the host has outside of the workspace is neither read nor written."""
    async with open_sandbox(POLICY) as opened:
        sandbox, name = opened.sandbox, secrets.token_hex(4)
        secret = opened.workspace.parent / f"secret-{name}"
        secret.write_text("the host's")
        target = opened.workspace.parent / f"target-{name}"
        script = (
            f"ln -s {secret} read-{name}; ln -s {target} write-{name}; ln -s .. up-{name}; "
            f"ln -s {opened.workspace.parent} dir-{name}; ln -s /proc/1/root root-{name}"
        )
        await run_inside(sandbox, script)
        for path in (f"read-{name}", f"../{secret.name}", str(secret), f"up-{name}/{secret.name}",
                     f"dir-{name}/{secret.name}", f"root-{name}{secret}"):  # fmt: skip
            try:
                assert b"host" not in await sandbox.get(path), path
            except ToolFailed:
                continue
        for path in (f"write-{name}", f"../{target.name}", str(target), f"dir-{name}/{target.name}",
                     f"up-{name}/{target.name}", f"root-{name}{target}"):  # fmt: skip
            try:
                await sandbox.put(path, b"written")
            except ToolFailed:
                continue
        assert not target.exists()
        assert secret.read_text() == "the host's"


FILE_CHECKS: tuple[SandboxCheck, ...] = (
    check_the_workspace_stays,
    check_input_can_be_read_only,
    check_files_are_put_and_got,
    check_bad_paths_are_refused,
    check_paths_lead_nowhere_outside,
)
