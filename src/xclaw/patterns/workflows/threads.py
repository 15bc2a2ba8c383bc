"""A few threads that are there before the interpreter is closed, since none can be started afterwards
(standard library only)."""

import queue
import threading
from collections.abc import Callable, Sequence

THREADS = 16
_STACK_BYTES = 1 << 20


class Workers:
    """Runs functions at once, as far as there are threads; the caller works too, so that lists within
    lists cannot wait for each other."""

    def __init__(self, count: int = THREADS) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.stack_size(_STACK_BYTES)
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._waiting.get()()

    def run(self, functions: Sequence[Callable[[], object]]) -> list[object]:
        """The answers, in order. What one raised is raised when all have ended: the first of them."""
        batch = _Batch(functions)
        for _ in functions[1:]:
            self._waiting.put(batch.take_all)
        batch.take_all()
        batch.ended.wait()
        failure = next((failure for failure in batch.failures if failure is not None), None)
        if failure is not None:
            raise failure
        return batch.answers


class _Batch:
    def __init__(self, functions: Sequence[Callable[[], object]]) -> None:
        self._functions = functions
        self._lock = threading.Lock()
        self._next = 0
        self._left = len(functions)
        self.answers: list[object] = [None] * len(functions)
        self.failures: list[BaseException | None] = [None] * len(functions)
        self.ended = threading.Event()
        if not functions:
            self.ended.set()

    def take_all(self) -> None:
        """Run those that nobody runs yet, one after the other."""
        while (at := self._take()) is not None:
            self._run(at)

    def _take(self) -> int | None:
        with self._lock:
            if self._next >= len(self._functions):
                return None
            self._next += 1
            return self._next - 1

    def _run(self, at: int) -> None:
        try:
            self.answers[at] = self._functions[at]()
        except BaseException as failure:  # noqa: BLE001 - handed to whoever asked for the batch
            self.failures[at] = failure
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.ended.set()
