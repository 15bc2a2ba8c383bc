"""What fetching pages may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebSettings:
    allow_private: bool = False
    """Let addresses of this machine and of private networks be fetched."""
    timeout_s: float = 30.0
    """From the first byte sent to the last one received, redirects included."""
    max_bytes: int = 5_000_000
    """Of a page, unpacked; the rest is left out."""
    max_chars: int = 50_000
    """Of the text that a call answers, when it does not ask for less."""
    max_redirects: int = 5
    user_agent: str = "xclaw web_fetch"
