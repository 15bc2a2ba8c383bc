"""One token estimate, for whatever a provider does not report."""

TOKENS_PER_CHARACTER = 0.25
TOKENS_PER_EXTRA_BYTE = 0.3
MESSAGE_OVERHEAD = 4
"""Tokens a message costs beside its text."""
PIXELS_PER_TOKEN = 750
IMAGE_TOKENS = (85, 1_600)
"""A picture costs between these, whatever its size: providers scale large ones down."""


def image_tokens(width: int, height: int) -> int:
    """Tokens of a picture, about."""
    least, most = IMAGE_TOKENS
    return min(max(width * height // PIXELS_PER_TOKEN, least), most)


def estimate_tokens(text: str) -> int:
    """Tokens of a text: a quarter per ASCII letter, about 0.85 per Chinese character.

    Never far below the truth in either script, so that compaction comes in time.
    """
    if text.isascii():
        return int(len(text) * TOKENS_PER_CHARACTER) + 1
    extra_bytes = len(text.encode("utf-8", "replace")) - len(text)
    return int(len(text) * TOKENS_PER_CHARACTER + extra_bytes * TOKENS_PER_EXTRA_BYTE) + 1


def ascii_length(text: str) -> float:
    """How many characters of ASCII take as many tokens."""
    if text.isascii():
        return len(text)
    extra_bytes = len(text.encode("utf-8", "replace")) - len(text)
    return len(text) + extra_bytes * TOKENS_PER_EXTRA_BYTE / TOKENS_PER_CHARACTER


def share_inline(text: str, limit_chars: int) -> float:
    """How much of a text fits where `limit_chars` characters of ASCII may stand: 1.0 for all of it. Text that
    takes more tokens per character, such as Chinese, gets as many tokens, so fewer characters."""
    allowed = int(limit_chars * TOKENS_PER_CHARACTER) + 1
    tokens = estimate_tokens(text)
    if len(text) <= limit_chars and tokens <= allowed:
        return 1.0
    return min(limit_chars / len(text), allowed / tokens)
