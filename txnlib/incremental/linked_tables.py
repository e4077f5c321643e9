"""Tables of a run that resumes. Unchanged files are linked, new rows are written in files of their own.

Tables that cannot be linked (`linked_files`), and small ones, are written again with all their rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from txnlib.delta.commits import Commit
from txnlib.delta.store import RunStore, Store, again_after_conflicts
from txnlib.incremental.carried_rows import ResumedTable, rows_of_files
from txnlib.incremental.linked_files import DataFile, files_of, link, move, partition_columns, replace_run
from txnlib.spark.schemas import TABLES, conform

#: Fewest bytes of a table for which files are linked. Below this, writing them again takes no longer and makes fewer files.
MIN_LINKED_BYTES: Final = 32 << 20
#: Folder next to the tables for the new rows of a run that also links files.
TEMPORARY_FOLDER: Final = "_aside"


class LinkedTables:
    """Writes tables of a run with rows carried over, and remembers which files were not linked."""

    def __init__(self, tables: RunStore) -> None:
        self._tables = tables
        #: For tables with linked files: the other files.
        self._new_files: dict[str, list[DataFile]] = {}

    def write(self, name: str, table: ResumedTable) -> None:
        """Replaces the rows of the run in a table in one commit."""
        self._new_files.pop(name, None)
        if not self._link(name, table):
            self._tables.write(name, conform(table.new, TABLES[name]).unionByName(table.carried.rows(name)))

    def read_new(self, name: str) -> DataFrame:
        """The rows of the run that are not in linked files. Some of them may be carried over, too."""
        files = self._new_files.get(name)
        return self._tables.read(name) if files is None else rows_of_files(self._tables.store.spark, name, files)

    def _link(self, name: str, table: ResumedTable) -> bool:
        """Writes a table and links the unchanged files of an earlier run. Returns False, without writing, if that is impossible."""
        store, run_id = self._tables.store, self._tables.run_id
        if store.folder is None:
            return False
        folder = Path(store.folder, name)
        known = files_of(folder, table.carried.earlier.run_id)
        if known is None or sum(file.bytes for file in known) < MIN_LINKED_BYTES or files_of(folder, run_id) is None:
            return False
        unchanged, other_rows = table.carried.split(store.spark, name, known)
        rows = conform(table.new, TABLES[name]).unionByName(other_rows)
        with _temporary_store(store, run_id, name) as temporary:
            written = RunStore(temporary, self._tables.cluster, run_id)
            written.write(name, rows, partition_columns=partition_columns(folder))
            written_files = files_of(Path(str(temporary.folder), name), run_id)
            assert written_files is not None
            new = [move(file, folder, run_id) for file in written_files]
        files = [*new, *(link(file, folder, run_id) for file in unchanged)]
        again_after_conflicts(replace_run)(folder, run_id, files)
        self._new_files[name] = new
        self._tables.note_commit(name, Commit(sum(file.rows for file in files), len(files), sum(file.bytes for file in files)))
        return True


def remove_temporary_files(store: Store, run_id: str) -> None:
    """Removes the temporary files that an interrupted attempt of a run left in a folder of tables."""
    if store.folder is not None:
        shutil.rmtree(Path(store.folder, TEMPORARY_FOLDER, run_id), ignore_errors=True)


@contextmanager
def _temporary_store(store: Store, run_id: str, name: str) -> Iterator[Store]:
    """A temporary store for one table of a run, next to the tables."""
    folder = Path(str(store.folder), TEMPORARY_FOLDER, run_id, name)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield Store(store.spark, str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.parent.rmdir()
            folder.parent.parent.rmdir()
