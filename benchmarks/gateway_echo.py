"""The floor of the gateway benchmark: a bare uvicorn that sends each WebSocket message back."""

import asyncio
import json
import socket
import sys

import uvicorn
from starlette.types import Receive, Scope, Send


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        await send({"type": "websocket.send", "text": message["text"]})


class Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{port}"}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    config = uvicorn.Config(
        echo,
        port=0,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
        lifespan="off",
    )
    asyncio.run(Server(config).serve())
