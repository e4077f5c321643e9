"""A small capture in one pass: the rows of each file, as long as they are few."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.segments import rows_of_file
from txnlib.readers.capture import Capture, FileKind, ResumedSegment, list_capture
from txnlib.readers.file_parts import read_before
from txnlib.readers.storage import files
from txnlib.readers.table_readers import SEGMENT_PARTS_TABLE, read_small_capture, read_table

MUCH = {"most_rows": 1 << 40, "most_bytes": 1 << 40}


@pytest.fixture
def capture(repository) -> Capture:
    return list_capture([str(repository / "examples" / "quickstart" / "brokers")])


def rows_of(capture: Capture, table: str) -> list[dict]:
    return [row for file in capture.files for rows in read_table(table, file) for row in rows.to_pylist()]


def test_each_table_has_the_rows_of_its_files(capture):
    found = read_small_capture(capture, **MUCH)
    assert found is not None
    assert SEGMENT_PARTS_TABLE not in found
    for table, rows in found.items():
        assert rows.to_pylist() == rows_of(capture, table), table


def test_each_file_is_opened_once(capture, monkeypatch):
    opened: list[str] = []
    real = files.open_regular
    monkeypatch.setattr(files, "open_regular", lambda path: opened.append(str(path)) or real(path))
    read_small_capture(capture, **MUCH)
    assert opened == [file.path for file in capture.files]


@pytest.mark.parametrize("limit", [{"most_rows": 700}, {"most_bytes": 100_000}])
def test_reading_ends_as_soon_as_a_table_has_too_many_rows(capture, monkeypatch, limit):
    opened: list[str] = []
    real = files.open_regular
    monkeypatch.setattr(files, "open_regular", lambda path: opened.append(str(path)) or real(path))
    assert read_small_capture(capture, **{**MUCH, **limit}) is None
    assert len(opened) < len(capture.files)


def test_a_resumed_file_has_one_row_with_what_was_read_of_it_before(capture, tmp_path):
    file = max(capture.of_kind(FileKind.SEGMENT), key=lambda file: file.size)
    (whole,) = rows_of_file("segments", file)
    batches, cut = rows_of_file("record_batches", file), tmp_path / "cut"
    for last, following in list(pairwise(batches))[::10]:
        at = following["position"], last["last_offset"], last["partition_leader_epoch"]
        cut.write_bytes(Path(file.path).read_bytes()[: at[0]])
        (read,) = rows_of_file("segments", replace(file, path=str(cut), size=at[0]))
        before = read_before(read, file.path, *at[:2])
        resumed = ResumedSegment(file.topic, file.partition, file.source, file.offset, file.path, *at)
        one = Capture((file,), capture.notes, capture.inputs, (resumed,))
        found = read_small_capture(one, [before], **MUCH)
        assert found is not None
        assert found["segments"].to_pylist() == [whole]
