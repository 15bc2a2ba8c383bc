"""Small PDF files, made by hand."""

import zlib


def pdf_of(*pages: str) -> bytes:
    """One page for each text."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({_escaped(text)}) Tj ET".encode("latin-1") for text in pages]
    return _pdf([(stream, b"") for stream in streams])


def bomb(size: int) -> bytes:
    """A page whose contents unpack to `size` bytes."""
    packer = zlib.compressobj(9)
    block = b" " * 1_000_000
    packed = b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()
    return _pdf([(packed, b" /Filter /FlateDecode")])


def endless() -> bytes:
    """A page tree that is its own child."""
    return _file([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _pdf(pages: list[tuple[bytes, bytes]]) -> bytes:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, (stream, more) in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * at)
        )
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(stream), more, stream))
    return _file(objects)


def _file(objects: list[bytes]) -> bytes:
    out = b"%PDF-1.4\n"
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (
            len(objects) + 1,
            table,
            len(objects) + 1,
            len(out),
        )
    )
