"""What the gateway is told."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Where it listens, who may come in, and what one client may cost. Sizes in bytes, times in seconds."""

    host: str = "127.0.0.1"
    """The address to listen on. With another than a loopback one, tokens travel in the clear unless a
    proxy with TLS stands in front."""
    port: int = 8763
    """0: any free one."""
    token: str = field(default="", repr=False)
    """The owner's token, in place of the one in `token_file`; at least 16 characters."""
    token_file: str = ""
    """The owner's token; empty: `gateway-token` in the home."""
    users_file: str = ""
    """The tokens of other users, hashed; empty: `tokens.json` in the home."""
    state_file: str = ""
    """Where a running gateway says how to reach it; empty: `gateway.json` in the home."""
    allowed_hosts: tuple[str, ...] = ()
    """What the Host header may name beside `localhost`, `127.0.0.1` and `[::1]`: `name` (any port) or
    `name:port`."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of other origins that may open WebSockets: `https://name` or `https://name:port`."""
    max_message_bytes: int = 1_000_000
    """The longest body of a request, and the longest WebSocket message."""
    max_connections: int = 2_000
    """Further ones get a 503."""
    header_timeout_s: float = 10.0
    """How long the head of a request may take, from the connection or its first byte on."""
    body_timeout_s: float = 30.0
    """How long the whole body may take."""
    drain_s: float = 10.0
    """How long a gateway that was told to stop lets clients finish. Runs are in the journal and go on at
    the next start."""
    stall_s: float = 30.0
    """A client that reads nothing for so long, while there is something to read, or answers no ping is
    dropped."""
    outlet_bytes: int = 262_144
    """What is kept for a client that reads slowly, beside the kernel's own buffer."""
    keepalive_s: float = 15.0
    """Between signs of life on a connection on which nothing happens."""
    idle_exit_s: float | None = None
    """Stop when there was neither a client nor a run for so long; None: never."""
