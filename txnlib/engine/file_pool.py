"""Processes that read a capture, each file once for all tables.

Python functions of the embedded engine share one interpreter, so reading there would use one core. Each process reads
some files at a time and writes the rows of each table to a Parquet file of a private folder, batch by batch. The engine
reads those.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow.parquet as pq

from txnlib.errors import EngineError
from txnlib.readers.capture import CaptureFile
from txnlib.readers.table_readers import SCHEMAS, may_hold, read_files

#: These files live for minutes: to compress them would take longer than to read them again.
_AS_WRITTEN: Final[Mapping[str, Any]] = {"compression": "none", "write_statistics": False}


def read_to_files(
    bundles: Sequence[Sequence[CaptureFile]],
    tables: Sequence[str],
    folder: Path,
    is_read: Callable[[int], object] = lambda size: None,
) -> None:
    """Writes the rows of these tables to `folder/<table>/<number>.parquet`, a file for each bundle that has any.

    `is_read`: called with the bytes of each bundle once it was read. Raises UnreadableInputError as `read_tables` does.
    """
    for table in tables:
        (folder / table).mkdir(mode=0o700, parents=True)
    most = min(len(bundles), processes())
    if most < 2:
        for number, bundle in enumerate(bundles):
            is_read(_read_bundle(number, bundle, tables, folder))
        return
    # A process that was forked from one with threads may wait for a lock of theirs for ever.
    with ProcessPoolExecutor(most, mp_context=get_context("spawn")) as pool:
        try:
            with _without_main(), _interrupts_blocked():
                running = [
                    pool.submit(_read_bundle, number, each, tables, folder) for number, each in enumerate(bundles)
                ]
            for ended in as_completed(running):
                is_read(ended.result())
        except BrokenProcessPool as error:
            raise EngineError(
                "a process that read files was killed, perhaps because the memory of this machine is full"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise


@contextmanager
def _without_main() -> Iterator[None]:
    """Hides the program from processes that start. Each would load it, and so run a script that has no guard."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Starts processes that get no Ctrl-C, from their first moment on: this one ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def processes() -> int:
    """The number of cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_bundle(number: int, bundle: Sequence[CaptureFile], tables: Sequence[str], folder: Path) -> int:
    wanted = [table for table in tables if any(may_hold(table, file) for file in bundle)]
    with ExitStack() as opened:
        writers: dict[str, Any] = {}
        for table, batch in read_files(wanted, bundle):
            if table not in writers:
                path = folder / table / f"{number}.parquet"
                writers[table] = opened.enter_context(pq.ParquetWriter(path, SCHEMAS[table], **_AS_WRITTEN))
            writers[table].write_batch(batch)
    return sum(file.extent for file in bundle)
