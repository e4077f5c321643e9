"""The daemon of Python workers, without tracebacks of connections that Spark closed.

Spark closes the connections of workers that were idle for a minute, of all workers when it stops, and of a task whose rows it no
longer needs. The worker then cannot write its last words, and `pyspark.daemon` (4.2) prints a `BrokenPipeError`. Nobody would read
those words: what a task raises while Spark listens goes through the connection. Every other exception is printed.

`spark-submit.sh` starts it with a local master (`spark.python.daemon.module`), where the workers see this code from the start.
Elsewhere `python_tasks` does the same in each worker, as soon as that loads this code.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType, SimpleNamespace

from pyspark import daemon


def quieten(module: ModuleType) -> None:
    """Replaces what the daemon prints exceptions with, for the daemon alone."""
    module.traceback = SimpleNamespace(**{**vars(traceback), "print_exc": _print_unless_closed})  # type: ignore[attr-defined]


def _print_unless_closed() -> None:
    error = sys.exception()
    frames = [] if error is None else traceback.extract_tb(error.__traceback__)
    # Where the daemon itself hands over the last words; in a task it would be deeper.
    if not (isinstance(error, ConnectionError) and frames and frames[-1].name == "worker"):
        traceback.print_exc()


if __name__ == "__main__":
    quieten(daemon)
    daemon.manager()
