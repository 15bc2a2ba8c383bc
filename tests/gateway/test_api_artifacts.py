"""Delivered files over HTTP: exactly what was delivered, to whom it belongs, under a harmless name."""

import json
from pathlib import Path
from urllib.parse import unquote

import pytest

from gateway.api_client import Api, Json, Scene, at_the_api
from xclaw.gateway.channels.api_files import attachment
from xclaw.testing.fake_replies import Calls, Text

DONE = '{"status": "success", "summary_data": {"done": 1}, "pointers": {}}'


async def delivered(scene: Scene, api: Api, *files: tuple[str, str], session: str = "s") -> Json:
    """A run whose worker delivered these files, as the API shows it."""
    scene.provider.queue(
        Calls(("c0", "delegate", json.dumps({"agent": "coder", "task": "Deliver the files as asked here."}))),
        *(
            Calls((f"c{number}", "deliver", json.dumps({"path": path, "content": content})))
            for number, (path, content) in enumerate(files, 1)
        ),
        Text(DONE),
        Text("done"),
    )
    told = await api.ask(session, "deliver")
    return (await api.get(f"/runs/{told[-1].data['run']}")).json


def test_a_delivered_file_is_fetched_by_its_name(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        run = await delivered(scene, scene.owner, ("report.html", "<script>alert(1)</script>"))
        (artifact,) = run["artifacts"]
        assert (artifact["name"], artifact["version"], artifact["size"]) == ("report.html", 1, 25)
        got = await scene.owner.get(f"/runs/{run['run']}/artifacts/report.html")
        assert (got.status, got.body) == (200, b"<script>alert(1)</script>")
        assert got.headers["Content-Type"] == "application/octet-stream"
        assert got.headers["Content-Disposition"].startswith("attachment; ")
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Content-Security-Policy"].startswith("sandbox;")
        assert got.headers["ETag"] == f'"{artifact["sha256"]}"'

    at_the_api(tmp_path, body)


def test_versions_are_told_apart_and_the_newest_comes_first(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        run = await delivered(scene, scene.owner, ("a.md", "old"), ("a.md", "new"))
        path = f"/runs/{run['run']}/artifacts/a.md"
        assert (await scene.owner.get(path)).body == b"new"
        assert (await scene.owner.get(f"{path}?version=1")).body == b"old"
        assert (await scene.owner.get(f"{path}?version=2")).body == b"new"
        assert (await scene.owner.get(f"{path}?version=3")).error == (404, "not_found")
        assert (await scene.owner.get(f"{path}?version=0")).error == (400, "bad_request")
        old = next(artifact for artifact in run["artifacts"] if artifact["version"] == 1)
        assert (await scene.owner.get(f"{path}?sha256={old['sha256']}")).body == b"old"

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    "name",
    [
        "..%2F..%2F..%2F..%2Fetc%2Fpasswd",
        "..%5C..%5Csecret.txt",
        "%2Fetc%2Fpasswd",
        "..",
        "%2e%2e",
        ".",
        "a.md%00",
        "a.md%2F..%2Fa.md",
        "A.MD",
        "%EF%BF%BD",
        "%ff%fe",
        "secret.txt",
        "file:///etc/passwd",
    ],
)
def test_a_name_is_looked_up_and_never_a_path(tmp_path: Path, name: str) -> None:
    """F01: nothing but what the tree delivered can be had, whatever the name looks like."""

    async def body(scene: Scene) -> None:
        (tmp_path / "secret.txt").write_text("secret")
        run = await delivered(scene, scene.owner, ("a.md", "x"))
        got = await scene.owner.get(f"/runs/{run['run']}/artifacts/{name}")
        assert got.error == (404, "not_found")
        assert b"secret\n" not in got.body
        assert b"root:" not in got.body

    at_the_api(tmp_path, body)


def test_what_another_run_delivered_is_not_among_a_runs_files(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        first = await delivered(scene, scene.owner, ("first.md", "1"))
        second = await delivered(scene, scene.owner, ("second.md", "2"), session="t")
        assert (await scene.owner.get(f"/runs/{second['run']}/artifacts/first.md")).error[0] == 404
        assert (await scene.owner.get(f"/runs/{first['run']}/artifacts/first.md")).body == b"1"
        bob = scene.as_user("bob")
        assert (await bob.get(f"/runs/{first['run']}/artifacts/first.md")).error[0] == 404

    at_the_api(tmp_path, body)


@pytest.mark.parametrize("change", ["edited", "longer", "gone", "link", "directory link"])
def test_a_file_that_was_changed_is_not_sent(tmp_path: Path, change: str) -> None:
    async def body(scene: Scene) -> None:
        run = await delivered(scene, scene.owner, ("a.md", "true"))
        path = Path(run["artifacts"][0]["path"])
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "a.md").write_text("true")
        match change:
            case "edited" | "longer":
                path.chmod(0o600)
                path.write_text("lies" if change == "edited" else "true and more")
            case "gone":
                path.unlink()
            case "link":
                path.unlink()
                path.symlink_to(elsewhere / "a.md")
            case _:
                path.parent.rename(tmp_path / "moved")
                path.parent.symlink_to(elsewhere)
        got = await scene.owner.get(f"/runs/{run['run']}/artifacts/a.md")
        assert got.error == (404, "not_found")
        assert str(tmp_path) not in got.body.decode()

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("report.md", "report.md"),
        ("报告 1.md", "报告 1.md"),
        ("naïve.txt", "naïve.txt"),
        ('a"; filename="evil.exe', 'a"; filename="evil.exe'),
        ("a\r\nSet-Cookie: x=1", "aSet-Cookie: x=1"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("...", "file"),
        ("a\x00b", "ab"),
        ("100%.txt", "100%.txt"),
        ("x" * 300 + ".tar", "x" * 130 + ".tar"),
    ],
)
def test_a_name_in_a_header_is_one_parameter_and_no_more(name: str, saved: str) -> None:
    value = attachment(name)["Content-Disposition"]
    assert value.isascii()
    assert value.isprintable()
    form, *parameters = value.split("; ")
    assert form == "attachment"
    assert [parameter.partition("=")[0] for parameter in parameters] == ["filename", "filename*"]
    assert unquote(parameters[1].partition("''")[2]) == saved
    plain = value.partition('filename="')[2].partition('"')[0]
    assert "\\" not in plain
    assert "%" not in plain
