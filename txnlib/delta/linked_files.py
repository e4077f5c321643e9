"""Hard links to data files of an earlier run. Unchanged rows are not written again.

Delta keeps the run of a row, its partition, in the log and not in the file. So a file whose rows all hold is linked (or copied,
where the file system has no links) under a name of its own, and noted in the log once more, for this run. Each run still has all
its rows, and goes without the others: a file is gone when the last of its names is.

Only of tables that lie in a folder here, and that any version of Delta can read: deletion vectors would say of a file which of
its rows count. And only for runs whose names are the same in a path, in a log and to every writer: Spark and delta-rs escape
other letters in ways of their own, and one does not find the file that the other removes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, PostCommitHookProperties

#: Of the log: what every reader knows.
PLAIN_READER: Final = 1
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
#: Spark takes a path with these for many.
_PATTERN: Final = re.compile(r"[*?{}\[\]\\,]")
#: Checkpoints and the end of old log entries are Spark's.
_NOTHING_MORE: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table, as the log notes it."""

    #: Where it lies.
    path: Path
    #: Of the columns by which the table is partitioned, `run_id` among them.
    values: Mapping[str, str | None]
    bytes: int
    rows: int
    #: Least and greatest values, and how many are NULL, of some columns.
    least: Mapping[str, Any]
    most: Mapping[str, Any]
    nulls: Mapping[str, int]


def files_of(table: Path, run_id: str) -> list[DataFile] | None:
    """The files of a run in a table; None if nobody but Spark should touch them."""
    if not _PLAIN_NAME.fullmatch(run_id) or _PATTERN.search(str(table)):
        return None
    try:
        opened = DeltaTable(table)
        if opened.protocol().min_reader_version != PLAIN_READER:
            return None
        actions = pa.table(opened.get_add_actions()).to_pylist()
    except DeltaError:
        return None
    return [_file(table, action) for action in actions if action["partition"]["run_id"] == run_id]


def partition_columns(table: Path) -> list[str]:
    """The columns of which the log has the values, and the files have not."""
    return list(DeltaTable(table).metadata().partition_columns)


def _file(table: Path, action: dict[str, Any]) -> DataFile:
    return DataFile(
        path=table / unquote(action["path"]),
        values={name: _as_logged(value) for name, value in action["partition"].items()},
        bytes=action["size_bytes"],
        rows=action["num_records"],
        least=_known(action["min"]),
        most=_known(action["max"]),
        nulls=_known(action["null_count"]),
    )


def _as_logged(value: Any) -> str | None:
    """A partition's value, as the log has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _known(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value is not None}


def link(file: DataFile, table: Path, run_id: str) -> DataFile:
    """The file under a name of its own, for a run."""
    linked = _place(file, table, run_id)
    try:
        os.link(file.path, linked.path)
        # `VACUUM` deletes what is old and in no commit: this one is not yet in any.
        os.utime(linked.path)
    except OSError:
        shutil.copyfile(file.path, linked.path)
    return linked


def move(file: DataFile, table: Path, run_id: str) -> DataFile:
    """The file, written elsewhere on the same file system, for a run."""
    moved = _place(file, table, run_id)
    file.path.rename(moved.path)
    return moved


def _place(file: DataFile, table: Path, run_id: str) -> DataFile:
    values = {**file.values, "run_id": run_id}
    folder = table.joinpath(*(f"{name}={value}" for name, value in values.items()))
    folder.mkdir(parents=True, exist_ok=True)
    return replace(file, path=folder / f"part-{uuid4()}.snappy.parquet", values=values)


def replace_run(table: Path, run_id: str, files: Iterable[DataFile]) -> None:
    """Makes these files all that a run has in a table, in one commit."""
    opened = DeltaTable(table)
    actions: list[Any] = [
        AddAction(
            path=file.path.relative_to(table).as_posix(),
            size=file.bytes,
            partition_values=file.values,
            modification_time=int(file.path.stat().st_mtime * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows, "minValues": file.least, "maxValues": file.most, "nullCount": file.nulls}),
        )
        for file in files
    ]
    opened.create_write_transaction(
        actions,
        mode="overwrite",
        schema=opened.schema(),
        partition_by=opened.metadata().partition_columns,
        partition_filters=[("run_id", "=", run_id)],
        post_commithook_properties=_NOTHING_MORE,
    )
