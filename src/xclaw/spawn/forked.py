"""The forked kind: a run whose loop goes on in a process of its own.

Its life is a task of this process like a local child's: it waits for the worker, checks what it says,
and outlives it. Only the loop is elsewhere (`runtime.hosting`).
"""

from xclaw.spawn.local import LocalLauncher


class ForkedLauncher(LocalLauncher):
    """Starts the tasks that have workers drive runs. A worker is ended before its task is."""
