"""How programs start: Ctrl-C in their first seconds, and the command `txnlib-audit`.

A module of its own, because it imports nothing that takes long to load.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from types import FrameType

from txnlib.errors import ExitCode


def end_at_once(number: int, frame: FrameType | None) -> None:
    """Ends the process with one line instead of a stack. Nothing was read or written yet."""
    sys.stderr.write("\ntxnlib: interrupted before anything was read\n")
    sys.stderr.flush()
    os._exit(ExitCode.INTERRUPTED)


def start_program(job: str) -> None:
    """Runs a job, named as `module:function`, as a program. Ctrl-C ends it at once with a line of its own, from the
    first moment on; a job in the background goes on, as its shell wants."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    module, _, name = job.partition(":")
    function = getattr(import_module(module), name)
    import_module("txnlib.jobs.program").start(function, end_at_once)


def audit() -> None:
    """Runs the job `audit` as a program.

    Raises SystemExit only if the exit code is not 0, as Databricks requires: 2 if an extra of the wheel is not
    installed.
    """
    start_program("txnlib.jobs.audit:job")
