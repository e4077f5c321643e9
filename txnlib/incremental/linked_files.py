"""Hard links to data files of an earlier run. Unchanged rows are not written again.

Tables are partitioned by run, and Delta stores partition values in the log, not in the file. So a file whose rows are all
unchanged is linked (or copied, if the file system has no links) under a new name, and added to the log for this run. Each run still
has all its rows, and can be deleted without affecting others: a file is gone when its last name is.

This is done only for tables in a local folder that any version of Delta can read, because deletion vectors would exclude some rows
of a file. And only for run ids that need no escaping in a path: Spark and delta-rs escape other characters differently, so one
would not find the file that the other removes.
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

#: Version of the reader protocol that every reader supports.
PLAIN_READER: Final = 1
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
#: Characters that make Spark read a path as a pattern.
_PATTERN: Final = re.compile(r"[*?{}\[\]\\,]")
#: Spark writes checkpoints and expires old log entries.
_NOTHING_MORE: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table, as recorded in the log."""

    path: Path
    #: Values of the partition columns, including `run_id`.
    values: Mapping[str, str | None]
    bytes: int
    rows: int
    #: Minimum, maximum and number of NULLs, for some columns.
    least: Mapping[str, Any]
    most: Mapping[str, Any]
    nulls: Mapping[str, int]


def files_of(table: Path, run_id: str) -> list[DataFile] | None:
    """The files of a run in a table; None if only Spark may handle them."""
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
    """The partition columns, whose values are in the log but not in the files."""
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
    """A partition value in the form of the log."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _known(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value is not None}


def link(file: DataFile, table: Path, run_id: str) -> DataFile:
    """Links the file under a new name for a run."""
    linked = _place(file, table, run_id)
    try:
        os.link(file.path, linked.path)
        # Make the file new: `VACUUM` deletes old files that are in no commit, and this one is not in any yet.
        os.utime(linked.path)
    except OSError:
        shutil.copyfile(file.path, linked.path)
    return linked


def move(file: DataFile, table: Path, run_id: str) -> DataFile:
    """Moves a file from elsewhere on the same file system into a run."""
    moved = _place(file, table, run_id)
    file.path.rename(moved.path)
    return moved


def _place(file: DataFile, table: Path, run_id: str) -> DataFile:
    values = {**file.values, "run_id": run_id}
    folder = table.joinpath(*(f"{name}={value}" for name, value in values.items()))
    folder.mkdir(parents=True, exist_ok=True)
    return replace(file, path=folder / f"part-{uuid4()}.snappy.parquet", values=values)


def replace_run(table: Path, run_id: str, files: Iterable[DataFile]) -> None:
    """Replaces the files of a run in a table by these, in one commit."""
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
