"""From bytes to text: charsets, and HTML to Markdown in a process of its own, which is all that a hostile
page can break."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

import msgspec

from xclaw.contracts.cancellation import finished
from xclaw.contracts.errors import ToolFailed
from xclaw.tools.web_http import Fetched

CHILD = "xclaw.tools.web_page_child"
CONVERT_S = 20.0
SNIFFED = 4_096
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_WORD = re.compile(r"\w")
_HTML = re.compile(
    rb"^\s*(?:<!--.{0,500}?-->\s*)*<(?:!doctype html|html|head|body|title|div|p|h1)\b", re.I | re.S
)
CHARSETS = frozenset(
    {
        "utf-8", "utf-16", "utf-16-le", "utf-16-be", "us-ascii", "gb2312", "gbk", "gb18030", "big5",
        "big5-hkscs", "euc-jp", "shift_jis", "iso-2022-jp", "euc-kr", "koi8-r", "koi8-u", "macintosh",
        "tis-620", *(f"iso-8859-{n}" for n in range(1, 17)), *(f"windows-125{n}" for n in range(9)),
        "windows-874",
    }
)  # fmt: skip
"""What pages are written in. Python knows others, some of which are slow or no charsets at all."""
_ALIASES = {"utf8": "utf-8", "ascii": "us-ascii", "latin1": "iso-8859-1", "gb_2312-80": "gb2312", "sjis": "shift_jis",
            "x-sjis": "shift_jis", "macintosh": "mac-roman", "gb2312": "gb18030", "gbk": "gb18030",
            "iso-8859-1": "windows-1252", "us-ascii": "windows-1252"}  # fmt: skip
"""As browsers read them: the wider one."""


class Converted(msgspec.Struct, frozen=True):
    """What the child process says."""

    text: str = ""
    title: str = ""
    fault: str = ""


def is_html(page: Fetched) -> bool:
    if page.content_type:
        return page.content_type in ("text/html", "application/xhtml+xml")
    return _HTML.match(page.data[:SNIFFED]) is not None


def decoded(page: Fetched) -> str:
    """The text. Raises `ToolFailed` for bytes that are none."""
    for mark, charset in _MARKS:
        if page.data.startswith(mark):
            return page.data[len(mark) :].decode(charset, "replace")
    stated = page.charset or _meta(page.data)
    charset = stated.strip().lower().replace("_", "-").replace("shift-jis", "shift_jis")
    charset = _ALIASES.get(charset, charset)
    if charset in CHARSETS or charset == "mac-roman":
        return page.data.decode(charset, "replace")
    if b"\0" in page.data[:SNIFFED]:
        raise ToolFailed(f"{page.url} is no text")
    try:
        return page.data.decode("utf-8")
    except UnicodeDecodeError as error:
        if page.is_cut and error.start > len(page.data) - 4:  # cut within a letter
            return page.data[: error.start].decode("utf-8")
        return page.data.decode("windows-1252", "replace")


def _meta(data: bytes) -> str:
    found = _META.search(data[:SNIFFED])
    return found.group(1).decode("ascii") if found else ""


async def markdown(html: str, url: str) -> Converted:
    """Raises `ToolFailed` for a page that cannot be read. Cancelling it ends the process."""
    converted = await _in_child("markdown", html, url)
    if converted is None or not (converted.fault or _WORD.search(converted.text)):
        plain = await _in_child("plain", html, url)
        converted = plain or converted
    if converted is None:
        raise ToolFailed(f"{url} cannot be read: its HTML is made to be unreadable")
    if converted.fault:
        raise ToolFailed(f"{url} cannot be read: {converted.fault}")
    return converted


async def _in_child(how: str, html: str, url: str) -> Converted | None:
    """None when the process did not survive the page."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", CHILD, how, url, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}
    )
    try:
        async with asyncio.timeout(CONVERT_S):
            said, _ = await process.communicate(html.encode("utf-8", "replace"))
        return msgspec.json.decode(said, type=Converted)
    except (TimeoutError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    # Alone, `wait` would wait for ever for what was said and not read (asyncio up to Python 3.12).
    await finished(process.communicate())
