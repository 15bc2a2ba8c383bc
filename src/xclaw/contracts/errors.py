"""What can go wrong, by what the reader should do next.

XclawError
+-- UsageError            the user's input or configuration; exit code 2
|   +-- NoModel           no key, no endpoint, no embedded model
|   +-- SessionBusy       another process works in the session
|   +-- NotAllowed        the token's user may not do or see this
|   +-- SandboxUnavailable the sandbox that was asked for does not work here
+-- ModelError            one attempt at a model call failed
|   +-- ModelUnavailable  outage, rate limit, network: retry, then the next model
|   +-- ModelInterrupted  the stream ended before the answer did: retry
|   +-- ModelRejected     this model will never take this request: the next model
|   +-- ContextTooLong    the request must shrink
+-- AllModelsFailed       the whole chain
+-- ToolFailed            a tool call failed; the text goes to the model
|   +-- NotPermitted      it may not run: a rule, a mode or a person said so
+-- LimitReached          a bound of the run or its tree
+-- SpawnRefused          a child may not start; the text goes to the model
+-- Deadlock              everybody of a team waits for somebody else; ends the run
+-- SandboxLost           the run's sandbox crashed or was killed; ends the run
+-- JournalError          events could not be made durable
    +-- Fenced            another process owns the run now
"""

from typing import Literal

from xclaw.contracts.usage import Usage


class XclawError(Exception):
    """Root of everything xclaw raises on purpose."""


class UsageError(XclawError):
    """The user's input or configuration is wrong. The text says what, where and what to do."""


class NoModel(UsageError):
    """There is nothing to run on."""


class SessionBusy(UsageError):
    """Another process works in the session; it will be free when that one is done."""


class NotAllowed(UsageError):
    """The user that a token names may not do this. Of what belongs to others it is said that it is not
    there, so this is about scopes."""


class SandboxUnavailable(UsageError):
    """No sandbox of the kind that was asked for can be started here. The text says why and what to do."""


class ModelError(XclawError):
    """One attempt at a model call failed.

    `status` is the HTTP status or None; `usage` what the attempt is known to have cost;
    `partial` the text that had been streamed and must be retracted.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        usage: Usage | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.usage = usage
        self.partial = partial


class ModelUnavailable(ModelError):
    """`retry_after_s` is what the provider asked for, None if it did not say."""

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        usage: Usage | None = None,
        partial: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(text, status=status, usage=usage, partial=partial)
        self.retry_after_s = retry_after_s


class ModelInterrupted(ModelError):
    """The stream broke, ended without a finish reason, or ended empty."""


class ModelRejected(ModelError):
    """400, 401, 403, 404: repeating it would fail the same way; no sign of an outage."""


class ContextTooLong(ModelError):
    """The request does not fit the model's window."""


class AllModelsFailed(XclawError):
    """Every model of the chain failed; `failures` has the last error of each, in order."""

    def __init__(self, text: str, failures: tuple[ModelError, ...]) -> None:
        super().__init__(text)
        self.failures = failures


class ToolFailed(XclawError):
    """A tool call failed. The text is written for a model: what, why, what to try."""


class NotPermitted(ToolFailed):
    """A call was not let run, by a rule, a mode or a person, or because nobody was there to be asked."""


LimitName = Literal["turns", "time", "tokens", "usd", "calls", "depth", "width", "repeats"]


class LimitReached(XclawError):
    """A bound was met, before spending past it."""

    def __init__(self, limit: LimitName, text: str) -> None:
        super().__init__(text)
        self.limit = limit


class SpawnRefused(XclawError):
    """A child may not start: unknown agent, depth, width, budget, breaker or cancellation."""


class Deadlock(XclawError):
    """A member of a team waits for mail that nobody is left to write. The text names who waits for what."""


class SandboxLost(XclawError):
    """The sandbox that a run's commands were executed in is gone. The text says what became of it."""


class JournalError(XclawError):
    """Events could not be written or read."""


class Fenced(JournalError):
    """Another process has written to this run: this one must stop, at once and silently."""
