"""Reads a page from standard input and prints its text as JSON; started by `web_page`.

python -I -m xclaw.tools.web_page_child markdown|plain URL
"""

import importlib
import json
import logging
import re
import resource
import sys
from html.parser import HTMLParser
from typing import Protocol, cast

MEMORY_BYTES = 1_500_000_000
PROCESSOR_S = 15
MAX_CHARACTERS = 2_000_000
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BREAKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article"})


class _Converted(Protocol):
    content: str | None


class _Library(Protocol):
    def ConversionOptions(  # noqa: N802 - the library's name
        self, *, extract_metadata: bool, skip_images: bool, hidden_content: str, base_url: str
    ) -> object: ...

    def convert(self, html: str, options: object) -> _Converted: ...


class _Texts(HTMLParser):
    """Only what is said, without any structure; in linear time and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if not self._silent and tag in _SILENT:
            self._silent = tag
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def converted(how: str, html: str, url: str) -> dict[str, object]:
    """The answer for one page."""
    found = _TITLE.search(html[:100_000])
    title = " ".join(found.group(1).split())[:300] if found else ""
    if how == "plain":
        texts = _Texts()
        texts.feed(html)
        text = re.sub(r"\s*\n\s*", "\n", "".join(texts.parts)).strip()
    else:
        try:
            library = cast("_Library", importlib.import_module("html_to_markdown"))
        except ImportError:
            return {"fault": "HTML needs html-to-markdown: pip install 'xclaw[web]'"}
        options = library.ConversionOptions(
            extract_metadata=False, skip_images=True, hidden_content="drop", base_url=url
        )
        text = library.convert(html, options).content or ""
    return {"text": text[:MAX_CHARACTERS], "title": title}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        answer = converted(sys.argv[1], html, sys.argv[2])
    except Exception:  # noqa: BLE001 - hostile input: without an answer the page is read in the other way
        sys.exit(1)
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii", "replace"))


if __name__ == "__main__":
    main()
