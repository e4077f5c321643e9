"""The checkpoints of brokers as rows: each file opened once per table, in batches of bounded size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txnlib.readers import arrow_schemas
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.storage import files
from txnlib.readers.table_readers import read_table

WHOLE = b"0\n5\n" + b"".join(b"orders %d 7\n" % number for number in range(5))


def checkpoint(folder: Path, name: str, content: bytes) -> CaptureFile:
    path = folder / name
    path.write_bytes(content)
    return CaptureFile(str(path), FileKind.CHECKPOINT, "raw:1", len(content), "orders", 0)


@pytest.mark.parametrize("table", ["checkpoints", "segments"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n"),
        ("partition.metadata", b"bad"),
        ("leader-epoch-checkpoint", b"0\n1\n0 0\n"),
        ("leader-epoch-checkpoint", b"0\n5\n0 0\n"),
    ],
)
def test_a_checkpoint_is_opened_once_for_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, name: str, content: bytes
) -> None:
    opened: list[str] = []
    real: Any = files.open_regular
    monkeypatch.setattr(files, "open_regular", lambda path, **how: (opened.append(path), real(path, **how))[1])
    list(read_table(table, checkpoint(tmp_path, name, content)))
    assert len(opened) == 1


def test_entries_come_in_batches_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_schemas, "DECODED_ROWS_PER_BATCH", 2)
    batches = list(read_table("checkpoints", checkpoint(tmp_path, "replication-offset-checkpoint", WHOLE)))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert [row["partition"] for batch in batches for row in batch.to_pylist()] == list(range(5))


@pytest.mark.parametrize(
    ("content", "expected"), [(b"", [(None, None)]), (b"0\n1\norders 0 7\n", [(None, None), ("orders", 7)])]
)
def test_the_cleaners_file_is_read_even_if_nothing_was_cleaned(
    tmp_path: Path, content: bytes, expected: list[Any]
) -> None:
    batches = read_table("checkpoints", checkpoint(tmp_path, "cleaner-offset-checkpoint", content))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["topic"], row["value"]) for row in rows] == expected
    assert {(row["name"], row["source"]) for row in rows} == {("cleaner_offset", "raw:1")}
