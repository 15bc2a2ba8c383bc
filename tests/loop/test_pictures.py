"""Which pictures of a conversation a request carries."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tools.pictures import png
from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ImageRef, ToolMessage, UserMessage
from xclaw.contracts.models import ModelRequest
from xclaw.contracts.tokens import IMAGE_TOKENS
from xclaw.loop.pictures import MAX_BYTES, MAX_IMAGES, with_pictures
from xclaw.loop.sizes import message_tokens
from xclaw.tools.files import view_file


def seen(setup: Setup, name: str, content: bytes | None = None) -> ToolMessage:
    (setup.private / name).write_bytes(png(300, 200) if content is None else content)
    output = asyncio.run(view_file.run({"path": name}, setup.context))
    return ToolMessage(f"call-{name}", "view_file", output.content, images=output.images)


def filled(setup: Setup, *messages: ChatMessage) -> ModelRequest:
    return asyncio.run(with_pictures(ModelRequest("", messages), setup.context.workspace))


def test_a_request_carries_the_bytes_and_the_conversation_does_not(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    message = seen(setup, "a.png")
    request = filled(setup, message)
    assert list(request.messages) == [message]
    assert dict(request.images) == {message.images[0].sha256: png(300, 200)}
    assert png(300, 200) not in repr(message).encode()


def test_a_conversation_without_pictures_stays_as_it_is(tmp_path: Path) -> None:
    request = ModelRequest("", (UserMessage("hi"), AssistantMessage("ho")))
    assert asyncio.run(with_pictures(request, make_setup(tmp_path).context.workspace)) is request


@pytest.mark.parametrize("change", ["changed", "same size", "gone", "a link", "a directory", "an artifact"])
def test_a_file_that_is_not_what_it_was_is_not_shown_and_the_text_says_so(
    tmp_path: Path, change: str
) -> None:
    """After a crash the same is shown as before, or nothing."""
    setup = make_setup(tmp_path)
    message = seen(setup, "a.png")
    path = setup.private / "a.png"
    (tmp_path / "outside.png").write_bytes(png(300, 200))
    path.unlink()
    match change:
        case "changed":
            path.write_bytes(png(301, 200))
        case "same size":
            path.write_bytes(png(300, 200)[:-1] + b"x")
        case "a link":
            path.symlink_to(tmp_path / "outside.png")
        case "a directory":
            path.mkdir()
        case _:
            pass
    request = filled(setup, message)
    assert request.images == {}
    [told] = request.messages
    assert isinstance(told, ToolMessage)
    assert told.images == ()
    assert told.content.startswith(message.content)
    assert "no longer shown" in told.content


def test_the_latest_pictures_are_shown_and_a_text_stands_for_older_ones(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    messages = [seen(setup, f"{n}.png", png(300, 200 + n)) for n in range(MAX_IMAGES + 3)]
    request = filled(setup, *messages)
    shown = [bool(message.images) for message in request.messages if isinstance(message, ToolMessage)]
    assert shown == [False] * 3 + [True] * MAX_IMAGES
    assert len(request.images) == MAX_IMAGES
    first = request.messages[0]
    assert isinstance(first, ToolMessage)
    assert "not shown again, since there are newer ones" in first.content


def test_all_pictures_together_are_bounded(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    large = 3_500_000
    messages = [seen(setup, f"{n}.png", png(300, 200) + bytes([n]) * large) for n in range(5)]
    request = filled(setup, *messages)
    assert 2 * large < sum(map(len, request.images.values())) <= MAX_BYTES


@pytest.mark.parametrize(
    "changes",
    [
        {"media_type": "text/html"},
        {"path": "/etc/passwd"},
        {"path": "../x"},
        {"size": -1},
        {"size": 10**30},
        {"path": "\0"},
    ],
)
def test_a_reference_that_was_tampered_with_shows_nothing(tmp_path: Path, changes: dict[str, object]) -> None:
    setup = make_setup(tmp_path)
    message = seen(setup, "a.png")
    forged = replace(message.images[0], **changes)  # pyright: ignore[reportArgumentType] - test shorthand
    request = filled(setup, replace(message, images=(forged,)))
    assert request.images == {}


def test_a_picture_counts_for_what_it_costs() -> None:
    plain = ToolMessage("c", "view_file", "x")
    for side, tokens in ((10, IMAGE_TOKENS[0]), (900, 1_080), (8_000, IMAGE_TOKENS[1])):
        image = ImageRef("a", "0", "image/png", side, side, 10)
        assert message_tokens(replace(plain, images=(image,))) - message_tokens(plain) == tokens
        assert message_tokens(UserMessage("x", images=(image,))) - message_tokens(UserMessage("x")) == tokens
