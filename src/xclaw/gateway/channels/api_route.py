"""What a route of the HTTP API is: one declaration that is served, checked and documented."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

import msgspec
from starlette.datastructures import Headers

from xclaw.contracts.errors import UsageError
from xclaw.gateway.channels.api_errors import ApiRefusal
from xclaw.gateway.desk import SessionDesk
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.identity import Identity, Scope
from xclaw.gateway.names import conversation_key

PREFIX = "/api/v1"
MAX_LIST = 500

Method = Literal["GET", "POST", "PATCH", "DELETE"]
Group = Literal["messages", "sessions", "team", "runs", "artifacts", "approvals", "agents", "documents"]

Body = TypeVar("Body", bound=msgspec.Struct)
Query = TypeVar("Query", bound=msgspec.Struct)
ReadBody = TypeVar("ReadBody", bound=msgspec.Struct, covariant=True)
ReadQuery = TypeVar("ReadQuery", bound=msgspec.Struct, covariant=True)


class Nothing(msgspec.Struct, frozen=True):
    """A body or a query that is not looked at."""


Name = Annotated[str, msgspec.Meta(max_length=200)]


class Whose(msgspec.Struct, frozen=True, kw_only=True):
    """The query of what belongs to a user."""

    user: Annotated[
        Annotated[str, msgspec.Meta(pattern="^([a-z0-9][a-z0-9_.-]{0,63})?$")],
        msgspec.Meta(description="Another user's things. For admins."),
    ] = ""


@dataclass(frozen=True, slots=True)
class Call(Generic[ReadBody, ReadQuery]):
    """One request, read and checked."""

    gateway: Gateway
    desk: SessionDesk
    identity: Identity
    user: str
    """Whose things it is about."""
    path: Mapping[str, str]
    """The parameters in the address, decoded."""
    body: ReadBody
    query: ReadQuery
    headers: Headers
    welcome: Callable[[], bool]
    """Whether its token still lets it in: asked again and again while a stream goes on."""

    @property
    def key(self) -> str:
        """The conversation that `{session}` names. Raises `ApiRefusal` for a name that none can have."""
        try:
            return conversation_key(self.path["session"], self.user)
        except UsageError as error:
            raise ApiRefusal("not_found", str(error)) from None


@dataclass(frozen=True, slots=True)
class HeaderUse:
    """A header that a route looks at."""

    name: str
    about: str
    pattern: str


@dataclass(frozen=True)
class ApiRoute(Generic[Body, Query]):
    """A method on a path. `handle` answers what `answer` says, or an ASGI application that does.

    `handle` raises `ApiRefusal` and `UsageError` for what the client is told.
    """

    method: Method
    path: str
    """Below `PREFIX`, unless `at_root`. A part in braces is a parameter."""
    handle: Callable[[Call[Body, Query]], Awaitable[object]]
    group: Group
    summary: str
    answer: object = None
    """The type of the answer; None: no content."""
    status: int = 200
    media_types: tuple[str, ...] = ("application/json",)
    body: type[Body] = cast("type[Body]", Nothing)
    query: type[Query] = cast("type[Query]", Nothing)
    scope: Scope = "chat"
    refusals: tuple[int, ...] = ()
    """Statuses of its own, beside those of every route, and 404 of those with a parameter."""
    headers: tuple[HeaderUse, ...] = ()
    """Headers that it looks at."""
    at_root: bool = False
    details: str = ""

    @cached_property
    def name(self) -> str:
        """Its own name: what the function is called."""
        return self.handle.__name__

    @cached_property
    def full_path(self) -> str:
        return self.path if self.at_root else PREFIX + self.path

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def is_json(self) -> bool:
        return self.answer is not None and self.media_types == ("application/json",)

    @property
    def is_described(self) -> bool:
        """Whether the answer has a type of its own, and is not just text or bytes."""
        return self.answer not in (None, str, bytes)

    @property
    def has_body(self) -> bool:
        return self.body is not Nothing

    @cached_property
    def body_required(self) -> bool:
        return any(field.required for field in msgspec.structs.fields(self.body))

    def read_body(self, raw: bytes) -> Body:
        """Raises `ApiRefusal` that names the field."""
        if not raw and not self.body_required:
            return self.body()
        try:
            return msgspec.json.decode(raw, type=self.body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ApiRefusal("bad_request", f"the body is not what it should be: {error}") from None

    def read_query(self, values: Mapping[str, str]) -> Query:
        """Raises `ApiRefusal` that names the parameter."""
        try:
            return msgspec.convert(dict(values), self.query, strict=False)
        except msgspec.MsgspecError as error:
            text = str(error).replace("`$.", "`?")
            raise ApiRefusal("bad_request", f"the query is not what it should be: {text}") from None


AnyRoute = ApiRoute[Any, Any]
"""Of a table: each route knows its own types, and `handle` gets what `read_body` and `read_query` made."""


def user_of(identity: Identity, query: msgspec.Struct) -> str:
    """Whose things a request is about. Raises `ApiRefusal` for another user's without the scope."""
    wanted = query.user if isinstance(query, Whose) else ""
    if not wanted or wanted == identity.user:
        return identity.user
    if "admin" not in identity.scopes:
        raise ApiRefusal("not_allowed", "only a token with the scope admin may name another user")
    return wanted.rstrip("\n")  # which a pattern's end lets through
