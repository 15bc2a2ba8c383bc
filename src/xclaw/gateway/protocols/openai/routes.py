"""The addresses of the OpenAI wire."""

import logging
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from xclaw.gateway.channels.api_errors import new_mark, unexpected
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.guards import identity_of
from xclaw.gateway.protocols.openai.chat_reading import read_chat
from xclaw.gateway.protocols.openai.chat_writing import ChatForm
from xclaw.gateway.protocols.openai.exchange import Exchange
from xclaw.gateway.protocols.openai.model_ids import agent_of, model_list, model_object
from xclaw.gateway.protocols.openai.refused import Refused, refusal_response
from xclaw.gateway.protocols.openai.responses_reading import read_responses
from xclaw.gateway.protocols.openai.responses_writing import ResponsesForm

logger = logging.getLogger(__name__)

PROGRESS_HEADER = "x-xclaw-progress"
"""`off`: tell nothing of what the agents are doing."""

Answering = Callable[[Gateway, Request], Awaitable[ASGIApp]]


def openai_routes(gateway: Gateway) -> list[BaseRoute]:
    """What the server mounts at its root, behind `Guards`."""
    return [
        Route("/v1/models", _Endpoint(gateway, _models), methods=["GET"]),
        Route("/v1/models/{model:path}", _Endpoint(gateway, _model), methods=["GET"]),
        Route("/v1/chat/completions", _Endpoint(gateway, _chat), methods=["POST"]),
        Route("/v1/responses", _Endpoint(gateway, _responses), methods=["POST"]),
    ]


class _Endpoint:
    """The ASGI app of one address: whatever goes wrong is answered in OpenAI's form."""

    def __init__(self, gateway: Gateway, answering: Answering) -> None:
        self._gateway = gateway
        self._answering = answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(Request(scope, receive))
        except Refused as refused:
            answer = refusal_response(refused)
        except ClientDisconnect:
            return
        except Exception:
            mark = new_mark()
            logger.exception("a request failed [%s]", mark)
            answer = refusal_response(Refused(unexpected(mark), code="internal", status=500))
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        if "chat" not in identity_of(request.scope).scopes:
            text = "this token's scopes do not allow it: 'chat' is needed"
            raise Refused(text, code="not_allowed", status=403)
        return await self._answering(self._gateway, request)


async def _models(gateway: Gateway, _: Request) -> ASGIApp:
    return JSONResponse(model_list(gateway.agents))


async def _model(gateway: Gateway, request: Request) -> ASGIApp:
    name = agent_of(request.path_params["model"], gateway.agents)
    return JSONResponse(model_object(name, gateway.agents))


async def _chat(gateway: Gateway, request: Request) -> ASGIApp:
    ask = read_chat(await request.body(), gateway.agents, with_progress=_with_progress(request))
    return Exchange(gateway, ask, ChatForm(ask), identity_of(request.scope).user)


async def _responses(gateway: Gateway, request: Request) -> ASGIApp:
    ask, body = read_responses(await request.body(), gateway.agents, with_progress=_with_progress(request))
    return Exchange(gateway, ask, ResponsesForm(ask, body), identity_of(request.scope).user)


def _with_progress(request: Request) -> bool:
    return request.headers.get(PROGRESS_HEADER, "").strip().lower() not in ("off", "0", "false", "no")
