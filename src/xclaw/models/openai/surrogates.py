"""Text that JSON escapes can make but UTF-8 cannot carry."""

from xclaw.contracts.unicode_forms import is_unicode


def split_pair(text: str) -> tuple[str, str]:
    """`text` and the first half of a surrogate pair that ends it: the other half may follow."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""


def mended(text: str) -> str:
    """Surrogate pairs joined, halves without a partner replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sendable(text: str) -> str:
    """`text` as any server takes it: no lone surrogates, no NUL."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if is_unicode(text) else mended(text)
