"""Daemon of Python workers, without tracebacks of connections that Spark closed.

Spark closes the connection of a worker that was idle for a minute, of all workers when it stops, and of a task whose
other rows it does not need. The worker then cannot write its final status, and `pyspark.daemon` (4.2) prints a
`BrokenPipeError`. Nothing would read that status: an exception in a task goes through the connection while Spark
listens. Every other exception is printed.

`spark-submit.sh` starts this daemon with a local master (`spark.python.daemon.module`), because the workers see this
code from the start. Elsewhere, `python_tasks` does the same in each worker, as soon as it loads this code.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType, SimpleNamespace

from pyspark import daemon


def quieten(module: ModuleType) -> None:
    """Replaces the function with which the daemon prints exceptions, for the daemon alone."""
    module.traceback = SimpleNamespace(**{**vars(traceback), "print_exc": _print_unless_closed})  # type: ignore[attr-defined]


def _print_unless_closed() -> None:
    error = sys.exception()
    frames = [] if error is None else traceback.extract_tb(error.__traceback__)
    # The frame in which the daemon itself writes the final status. An error in a task has deeper frames.
    if not (isinstance(error, ConnectionError) and frames and frames[-1].name == "worker"):
        traceback.print_exc()


if __name__ == "__main__":
    quieten(daemon)
    daemon.manager()
