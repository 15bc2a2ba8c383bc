"""Pictures in files: known by their headers, handed on by reference."""

import asyncio
import hashlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.pictures import PICTURES, png
from tools.workspaces_for_tools import make_setup
from xclaw.contracts.messages import ImageRef
from xclaw.contracts.tools import ToolOutput
from xclaw.tools.files import view_file
from xclaw.tools.images import MAX_IMAGE_BYTES, ImageHeader, read_header


def viewed(root: Path, content: bytes) -> ToolOutput:
    setup = make_setup(root)
    (setup.private / "a.img").write_bytes(content)
    return asyncio.run(view_file.run({"path": "a.img"}, setup.context))


@pytest.mark.parametrize("kind", sorted(PICTURES))
def test_a_picture_is_shown_as_one_with_a_text_that_does_for_who_cannot_see(
    tmp_path: Path, kind: str
) -> None:
    content = PICTURES[kind]
    output = viewed(tmp_path, content)
    format_name = kind.partition(" ")[0]
    assert output.content == f"[image: {format_name}, 300 x 200 pixels, {len(content)} bytes: a.img]"
    digest = hashlib.sha256(content).hexdigest()
    assert output.images == (ImageRef("a.img", digest, f"image/{format_name}", 300, 200, len(content)),)


@pytest.mark.parametrize("content", [png(9_000, 10), png(10, 9_000), png(10, 10) + b"\0" * MAX_IMAGE_BYTES])
def test_a_picture_that_is_too_large_is_told_only(tmp_path: Path, content: bytes) -> None:
    output = viewed(tmp_path, content)
    assert "too large to be shown" in output.content
    assert output.images == ()


@pytest.mark.parametrize(
    "content",
    [
        png(0, 5),
        png(10, 10)[:20],
        b"\x89PNG\r\n\x1a\n" + b"\0" * 30,
        b"GIF89a\0\0",
        b"\xff\xd8\xff\xe0\0\x01" + b"\0" * 20,
        b"\xff\xd8\xff\xda\0\x08" + b"\0" * 20,
        b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 30,
        b"RIFF\0\0\0\0WAVEfmt \0",
        b"%PDF-1.7\0",
    ],
)
def test_what_is_no_picture_is_a_binary_file(tmp_path: Path, content: bytes) -> None:
    output = viewed(tmp_path, content)
    assert output.content == f"[binary file, {len(content)} bytes: a.img]"
    assert output.images == ()


def test_a_jpeg_is_measured_behind_whatever_it_carries() -> None:
    carried = b"\xff\xe1" + struct.pack(">H", 60_000) + b"x" * 59_998
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, 200, 300) + b"\0" * 6
    assert read_header(b"\xff\xd8" + carried * 10 + frame) == ImageHeader("jpeg", 300, 200)


@given(st.sampled_from(sorted(PICTURES)), st.integers(0, 60), st.binary(max_size=40))
def test_no_bytes_make_the_reading_of_a_header_fail(kind: str, kept: int, rest: bytes) -> None:
    found = read_header(PICTURES[kind][:kept] + rest)
    assert found is None or min(found.width, found.height) > 0


def test_random_files_are_hardly_ever_pictures() -> None:
    assert not [found for _ in range(2_000) if (found := read_header(os.urandom(64)))]
