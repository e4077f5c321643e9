"""The traces of a job that failed: in a file, so that the last line of stderr says what to do."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, Final

from txnlib.pipeline.clock import now
from txnlib.version import __version__

#: Suffix of the file, which is next to the output folder.
SUFFIX: Final = ".failed.log"
#: Seconds to wait for the shutdown of Spark's JVM.
PATIENCE: Final = 20
#: An environment variable: it makes `conf/log4j2.properties` log messages with their stack traces, once a JVM starts.
WHOLE_LOG: Final = ("TXNLIB_LOG", "whole")


def is_debug(argv: Sequence[str]) -> bool:
    """Whether a command line asks for traces on stderr, even if it is invalid otherwise."""
    return bool(_asked(argv)[1])


def text_of(error: BaseException) -> str:
    """The traces of an exception and of its causes."""
    return "".join(traceback.format_exception(error))


def keep(error: BaseException, argv: Sequence[str]) -> str | None:
    """Writes the traces to a file next to the output folder, else to a temporary file. Returns its name, or None."""
    text = f"txnlib {__version__}, {now().isoformat(timespec='seconds')}\n\n{text_of(error)}"
    output = _asked(argv)[0]
    if output is not None and "://" not in output:
        folder = Path(output.removeprefix("file:")).absolute()
        with suppress(OSError, ValueError):
            return _written(folder.with_name(folder.name + SUFFIX), text)
    with suppress(OSError):
        number, name = tempfile.mkstemp(prefix="txnlib-", suffix=SUFFIX)
        os.close(number)
        return _written(Path(name), text)
    return None


def _written(file: Path, text: str) -> str:
    try:
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        with suppress(OSError):
            file.unlink()  # on a full disk, an empty file remains
        raise
    return str(file)


def end_spark() -> None:
    """Stops the JVM that this process started, if any, so that it prints nothing after our last line."""
    with suppress(ImportError, AttributeError, OSError, TimeoutExpired):
        from pyspark import SparkContext

        jvm = getattr(SparkContext._gateway, "proc", None)
        if jvm is None:
            return
        if (context := SparkContext._active_spark_context) is not None:
            context._accumulatorServer.shutdown()  # otherwise it would complain that the JVM is gone
        jvm.stdin.close()  # ends the JVM, which waits for it
        jvm.wait(PATIENCE)


def end_at_once(code: int) -> None:
    """Ends the process and what it started, without waiting for a query. Nothing is printed any more."""
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    with suppress(ImportError, AttributeError, OSError):
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        gateway.proc.kill()
    children = multiprocessing.active_children()
    for child in children:
        child.kill()
    for child in children:
        child.join(0.2)
    embedded = sys.modules.get("txnlib.engine.embedded")
    if embedded is not None:
        embedded.remove_files()
    os._exit(code)


def _asked(argv: Sequence[str]) -> tuple[str | None, bool]:
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--output", nargs="?")
    parser.add_argument("--debug", action="store_true")
    try:
        found, _ = parser.parse_known_args(list(argv))
    except ArgumentError:  # such as `--debug=yes`, which the job will refuse
        return None, False
    return found.output, found.debug
