"""A job as a program, from its command line to its exit code."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from txnlib.engine.choice import missing_extra
from txnlib.engine.memory import NEEDED_ADDRESSES, address_limit, limit_bytes, scarce_addresses
from txnlib.errors import ON_SPARK, ExitCode, StepError, TxnlibError
from txnlib.jobs import traces
from txnlib.jobs.progress import LINES, set_up
from txnlib.pipeline.failure import failure_of, texts_of


def main(job: Callable[[Sequence[str]], int], argv: Sequence[str], *, is_process: bool = False) -> int:
    """Runs a job and turns its exceptions into exit codes (`errors.ExitCode`).

    The last line of stderr is the job's own. `is_process`: the process ends with the job, so Spark is stopped before
    that line.
    """
    set_up(argv)
    if traces.is_debug(argv):
        os.environ.setdefault(*traces.WHOLE_LOG)
    try:
        return job(argv)
    except SystemExit as asked:  # argparse after --help
        return int(asked.code or 0)
    except KeyboardInterrupt:
        LINES.error(INTERRUPTED)
        return ExitCode.INTERRUPTED
    except Exception as raised:  # last line of defence: report the failure
        error = _named(raised)
        code, text = failure(error)
        if is_process:
            traces.end_spark()
        LINES.error(f"txnlib: {text}{_traces_of(error, argv)}")
        return code


#: Options that need no engine.
HELP: Final = {"-h", "--help"}
#: What Ctrl-C leaves behind.
INTERRUPTED: Final = "txnlib: interrupted; complete tables stay, and the same command makes the others"


def _end_on_interrupt(until_now: Callable[..., None] | None) -> None:
    """Lets Ctrl-C end the program at once, from a thread of its own. The main thread may be in a query or a commit,
    where Python runs no handler, and unwinding would wait for processes that read."""
    if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, until_now):  # a job in the background
        return
    ends, begins = os.pipe()
    os.set_blocking(begins, False)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.set_wakeup_fd(begins, warn_on_full_buffer=False)

    def wait() -> None:
        os.read(ends, 1)
        _end(INTERRUPTED, ExitCode.INTERRUPTED)

    Thread(target=wait, daemon=True).start()


def _end(last_line: str, code: ExitCode = ExitCode.FAILED) -> None:
    LINES.error(last_line)
    traces.end_at_once(code)


def start(job: Callable[[Sequence[str]], int], until_now: Callable[..., None] | None = None) -> None:
    """Runs a job as a program. Raises SystemExit only if the exit code is not 0, as Databricks requires.

    `until_now`: the handler of Ctrl-C that the program has had so far, if it set one.
    """
    _end_on_interrupt(until_now)
    if (lack := lack_of_addresses()) and not HELP & {*sys.argv}:
        _end(lack)
    watch_memory(_end)
    if code := main(job, sys.argv[1:], is_process=True):
        sys.exit(code)


def _named(error: Exception) -> Exception:
    """The error. If an extra's package is missing, the error that says which extra to install."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "txnlib").partition(".")[0] == "txnlib":
        return error
    return missing_extra("an audit", error)


def failure(error: Exception) -> tuple[ExitCode, str]:
    """The exit code for an exception of a job, and its message, in one line."""
    if isinstance(error, StepError):
        return error.exit_code, f"the audit failed {error.on_command_line()}"
    if isinstance(error, TxnlibError):
        return error.exit_code, error.on_command_line()
    found = failure_of(texts_of(error))
    return ExitCode.FAILED, f"the audit failed: {found.says}. {found.cause.remedy}"


def _traces_of(error: Exception, argv: Sequence[str]) -> str:
    """Writes the traces of a failure to a file and names it; or prints them to stderr with --debug, or if no file can
    be written.

    Errors that the caller can fix need no traces.
    """
    if isinstance(error, TxnlibError) and not isinstance(error, StepError):
        return ""
    file = None if traces.is_debug(argv) else traces.keep(error, argv)
    if file is None:
        LINES.error(traces.text_of(error).rstrip())
        return ""
    return f". Traces: {file}"


# ---- A word before lack of memory ends the program: windows of the embedded engine cannot spill (Sail 0.7.2)


#: The share of the memory from which on the kernel may kill the program at any moment.
_MOST: Final = 0.9
_EVERY_S: Final = 0.5
_SIZES: Final = Path("/proc/self/statm")


def taken_bytes() -> tuple[int, int]:
    """The address space that this program has taken, and the memory."""
    addresses, resident, *_ = _SIZES.read_text().split()
    return int(addresses) * os.sysconf("SC_PAGE_SIZE"), int(resident) * os.sysconf("SC_PAGE_SIZE")


def lack_of_addresses() -> str | None:
    """Why the program cannot run within `ulimit -v`. None if it can."""
    limit = scarce_addresses()
    if limit is None:
        return None
    return (
        f"txnlib: an audit needs {NEEDED_ADDRESSES >> 30} GiB of address space, and ulimit -v allows"
        f" {limit / 2**30:.1f} GiB: raise that, or limit its memory by a control group"
    )


def watch_memory(end: Callable[[str], None], most: int | None = None) -> None:
    """Calls `end` with the last line of the program, once it takes nearly all memory, or more than `most` bytes, or
    nearly all address space that `ulimit -v` allows.

    Linux only: elsewhere, nothing is watched.
    """
    if _SIZES.exists():
        limit = int(limit_bytes() * _MOST) if most is None else most
        addresses = address_limit()
        Thread(target=_watch, args=(end, limit, addresses and int(addresses * _MOST)), daemon=True).start()


def _watch(end: Callable[[str], None], limit: int, most_addresses: int | None) -> None:
    while True:
        addresses, resident = taken_bytes()
        if resident > limit:
            what = f"{resident / 2**30:.1f} GiB of memory, nearly all that there is"
            break
        if most_addresses is not None and addresses > most_addresses:
            what = f"{addresses / 2**30:.1f} GiB of address space, nearly all that ulimit -v allows"
            break
        time.sleep(_EVERY_S)
    end(f"txnlib: the audit took {what}; {ON_SPARK}")
