"""The embedded model as a `Model`: one slot, one queue, the chat-completions wire to its server."""

from dataclasses import replace
from pathlib import Path

from xclaw.contracts.errors import ModelInterrupted, ModelRejected, ModelUnavailable, UsageError
from xclaw.contracts.models import ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.models.embedded.joining import Progress
from xclaw.models.embedded.parts import QWEN_CODER, Weights
from xclaw.models.embedded.queue import CallQueue
from xclaw.models.embedded.server import Address, EmbeddedServer
from xclaw.models.embedded.settings import EmbeddedSettings
from xclaw.models.embedded.weights import ensure_weights
from xclaw.models.openai.client import Endpoint, OpenAIModel
from xclaw.models.openai.connections import Connections

_FIRST_BYTE_TIMEOUT_S = 900.0
"""A full context takes minutes to read on a busy machine."""
_IDLE_TIMEOUT_S = 180.0
_WORKER_TIMEOUT_S = 600.0


class LocalModel:
    """Answers with the embedded model; fetches nothing and starts nothing before the first call.

    Never sends `tools`: the model writes calls as text, so they are asked for with a JSON Schema.
    Costs nothing. `reply` raises a `ModelError`; what the user must put right is a `ModelRejected`,
    so that a chain goes on. Cancelling it leaves the queue or frees the slot.
    """

    def __init__(
        self,
        settings: EmbeddedSettings,
        progress: Progress | None = None,
        *,
        weights: Weights = QWEN_CODER,
    ) -> None:
        """`progress` is told of joining and downloading, which the first call may have to do."""
        self.queue = CallQueue()
        self._settings = settings
        self._connections = Connections()
        self._progress = progress
        self._weights = weights
        self._server = EmbeddedServer(
            settings, self._model_file, sha256=settings.sha256 or weights.sha256, memory=weights.memory
        )
        self._name = f"local:{weights.name}"
        self._profile = ModelProfile(
            context_tokens=settings.context_tokens,
            max_output_tokens=settings.max_output_tokens,
            native_tools=False,
            structured_output="alone",
            few_shots=True,
            worker_timeout_s=_WORKER_TIMEOUT_S,
            input_usd_per_million=0.0,
            output_usd_per_million=0.0,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    @property
    def server_pid(self) -> int | None:
        """The server's process, if it runs and this process started it."""
        return self._server.pid

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        async with self.queue.turn(orchestrator=request.orchestrator):
            model = self._model_at(await self._address())
            try:
                reply = await model.reply(self._fitted(request), sink)
            except (ModelUnavailable, ModelInterrupted):
                self._server.suspect()
                raise
        return replace(reply, cost_usd=0.0)

    async def close(self) -> None:
        """Stop the server, if this process started it. A later call starts one again."""
        await self._server.close()
        await self._connections.close()

    async def _address(self) -> Address:
        try:
            return await self._server.address()
        except UsageError as error:
            raise ModelRejected(f"{self._name}: {error}") from error
        except OSError as error:
            raise ModelUnavailable(f"{self._name}: its server cannot be started: {error}") from error

    async def _model_file(self) -> Path:
        return await ensure_weights(self._settings, self._progress, self._weights)

    def _model_at(self, address: Address) -> OpenAIModel:
        """Made anew for each call: what one odd refusal taught must not switch schemas off for all."""
        endpoint = Endpoint(
            f"{address.url}/v1",
            address.key,
            # The server closes idle connections when it likes; a new one costs nothing on this machine.
            headers={"Connection": "close"},
            first_byte_timeout_s=_FIRST_BYTE_TIMEOUT_S,
            idle_timeout_s=_IDLE_TIMEOUT_S,
        )
        return OpenAIModel(self._name, endpoint, self._connections, profile=self._profile)

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        limit = self._settings.max_output_tokens
        asked = request.max_output_tokens
        return replace(
            request,
            tools=(),
            temperature=0.0 if request.temperature is None else request.temperature,
            max_output_tokens=limit if asked is None else min(asked, limit),
        )
