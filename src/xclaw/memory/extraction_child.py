"""Reads one HTML or PDF file from standard input and prints its text as JSON; started by `extraction`.

python -I -m xclaw.memory.extraction_child html|pdf
"""

import importlib
import io
import json
import logging
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Protocol, cast

MEMORY_BYTES = 1_500_000_000
PROCESSOR_S = 60
MAX_CHARACTERS = 20_000_000
MAX_PAGES = 5_000
_INSTALL = "pip install 'xclaw[kb]'"


class _Page(Protocol):
    def extract_text(self) -> str: ...


class _Pdf(Protocol):
    @property
    def is_encrypted(self) -> bool: ...

    @property
    def pages(self) -> Iterable[_Page]: ...

    def decrypt(self, password: str) -> int: ...


class _PdfLibrary(Protocol):
    def PdfReader(self, stream: io.BytesIO) -> _Pdf: ...  # noqa: N802 - the library's name


class _Converted(Protocol):
    content: str | None


class _HtmlLibrary(Protocol):
    def ConversionOptions(self, *, extract_metadata: bool, skip_images: bool) -> object: ...  # noqa: N802

    def convert(self, html: str, options: object) -> _Converted: ...


class Unreadable(Exception):
    """The text says why."""


def pages_of(kind: str, raw: bytes) -> Iterator[str]:
    """The text, page by page. Raises `Unreadable`, and whatever the libraries raise."""
    if kind == "pdf":
        yield from _pdf_pages(raw)
    else:
        library = cast("_HtmlLibrary", _library("html_to_markdown", "HTML"))
        options = library.ConversionOptions(extract_metadata=False, skip_images=True)
        yield library.convert(raw.decode("utf-8", "replace"), options).content or ""


def _pdf_pages(raw: bytes) -> Iterator[str]:
    library = cast("_PdfLibrary", _library("pypdf", "PDF"))
    reader = library.PdfReader(io.BytesIO(raw))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("is encrypted")
    for number, page in enumerate(reader.pages):
        if number == MAX_PAGES:
            raise Unreadable(f"has more than {MAX_PAGES:,} pages; split it")
        yield page.extract_text()


def _library(name: str, what: str) -> object:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unreadable(f"{what} needs {name}: {_INSTALL}") from None


def read(kind: str, raw: bytes) -> dict[str, object]:
    """The answer for one file, whatever is in it."""
    pages: list[str] = []
    size = 0
    try:
        for page in pages_of(kind, raw):
            size += len(page)
            if size > MAX_CHARACTERS:
                return {"fault": f"has more than {MAX_CHARACTERS:,} characters of text; split it"}
            pages.append(page.encode("utf-8", "replace").decode("utf-8"))
    except Unreadable as error:
        return {"fault": str(error)}
    except MemoryError:
        return {"fault": f"needs more than {MEMORY_BYTES:,} bytes of memory"}
    except RecursionError:
        return {"fault": "is nested too deeply"}
    except Exception as error:  # noqa: BLE001 - hostile input: whatever its reader raises is the answer
        return {"fault": f"cannot be read as {kind.upper()}: {type(error).__name__}: {str(error)[:200]}"}
    return {"pages": pages}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    logging.disable(logging.CRITICAL)
    answer = read(sys.argv[1], sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()
