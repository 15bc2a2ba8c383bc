"""Stands in for the `xllamacpp` package inside the real server process.

The model's file name says how it behaves: "bad" does not load, "hang" never finishes loading. A chat
whose last text is "crash" ends the process; any other is echoed. POST bodies are kept at /seen.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import ClassVar


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        parts = ("model", "cpuparams", "cpuparams_batch", "sampling")
        super().__init__(**{name: SimpleNamespace() for name in parts})


class _Http(ThreadingHTTPServer):
    key = ""
    seen: ClassVar[list[object]] = []


class Server:
    def __init__(self, params: CommonParams) -> None:
        name = os.path.basename(params.model.path)  # noqa: PTH119  as little as possible is imported here
        if name.startswith("bad"):
            raise RuntimeError(f"cannot load {name}: wrong magic")
        if name.startswith("hang"):
            threading.Event().wait()
        server = _Http(("127.0.0.1", 0), _Answer)
        _Http.key = params.api_keys[0]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self._allowed():
            self._send(200, json.dumps(_Http.seen))

    def do_POST(self) -> None:
        if not self._allowed():
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _Http.seen.append(body)
        text = body["messages"][-1]["content"]
        if text == "crash":
            os._exit(3)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        self._send(
            200, json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})
        )

    def _allowed(self) -> bool:
        if self.headers["Authorization"] == f"Bearer {_Http.key}":
            return True
        self._send(401, "{}")
        return False

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
