"""Fingerprints of segments, and the positions from which to resume."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import TS, C, N, T
from tests.support.segments import rows_of_file
from txnlib.readers import arrow_schemas, file_parts
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.file_parts import put_together, read_before, resume_position
from txnlib.readers.header_columns import ReaderState
from txnlib.readers.storage import files
from txnlib.readers.table_readers import SEGMENT_PARTS_TABLE


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nights") / "00000000000000000000.log"


@pytest.fixture(autouse=True)
def landmarks_stand_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "LANDMARK_BYTES", 300)


def rows(table: str, path: Path, at: ReaderState | None = None) -> list[dict[str, Any]]:
    file = CaptureFile(str(path), FileKind.SEGMENT, "raw:1", path.stat().st_size, "orders", 0, 0, at)
    return rows_of_file(table, file)


def batches(seed: int, count: int, at: int = 0) -> list[bytes]:
    """Batches and markers of three producers."""
    chance = random.Random(seed)
    found, sequences = [], dict.fromkeys(range(3), 0)
    for _ in range(count):
        producer, records = chance.randrange(3), chance.randint(1, 4)
        kind = chance.random()
        if kind < 0.2:
            found.append(to_bytes(C(producer, 0, 3, at=at, ts=TS + at)))
            records = 1
        elif kind < 0.3:
            found.append(to_bytes(N(at=at, ts=TS + at)))
            records = 1
        else:
            first = sequences[producer]
            found.append(to_bytes(T(producer, 0, first, first + records - 1, at=at, ts=TS + at)))
            sequences[producer] += records
        at += records
    return found


def night_of(path: Path, content: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    path.write_bytes(content)
    (segment,) = rows("segments", path)
    return rows("record_batches", path), segment


def position_in(path: Path, segment: dict[str, Any]) -> ReaderState | None:
    with files.open_buffer(str(path)) as buffer:
        return resume_position(buffer, buffer.size, segment["landmarks"])


def same_as_whole(path: Path, before: list[dict[str, Any]], segment: dict[str, Any], at: ReaderState) -> None:
    kept = [row for row in before if row["position"] < at.position]
    assert kept + rows("record_batches", path, at) == rows("record_batches", path)
    (new,) = rows(SEGMENT_PARTS_TABLE, path, at)
    together = put_together([new, read_before(segment, str(path), at.position, at.last_offset)])
    assert pa.RecordBatch.from_pylist([together], schema=arrow_schemas.SEGMENTS).to_pylist() == rows("segments", path)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), first=st.integers(1, 25), more=st.integers(0, 25), torn=st.integers(0, 60))
def test_a_segment_that_grew_is_resumed(path, seed, first, more, torn):
    log = batches(seed, first + more)
    content = b"".join(log[:first])
    before, segment = night_of(path, content + (b"".join(log[first:])[:torn]))
    path.write_bytes(b"".join(log))
    at = position_in(path, segment)
    assert at is not None
    assert at.position == len(content)
    same_as_whole(path, before, segment, at)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), count=st.integers(3, 25))
def test_a_segment_that_was_written_again_is_resumed_only_if_that_changes_nothing(path, data, seed, count):
    log = batches(seed, count)
    before, segment = night_of(path, b"".join(log))
    cut = data.draw(st.integers(0, count))
    how = data.draw(st.sampled_from(["truncated", "compacted", "zeros", "recreated"]))
    if how == "truncated":
        at = int.from_bytes(log[cut][:8], "big") if cut < count else 10_000
        log = log[:cut] + batches(seed + 1, count, at=at)
    elif how == "compacted":
        del log[min(cut, count - 1)]
    elif how == "recreated":
        log = batches(seed + 1, count + cut)
    path.write_bytes(b"".join(log) + (bytes(data.draw(st.integers(1, 200))) if how == "zeros" else b""))
    at = position_in(path, segment)
    if at is not None:
        same_as_whole(path, before, segment, at)
    assert (at is None) or how in ("zeros", "truncated")


def test_a_batch_that_changed_in_place_is_seen_at_its_landmark(path):
    log = batches(7, 40)
    _, segment = night_of(path, b"".join(log))
    content = bytearray(b"".join(log))
    for mark in segment["landmarks"]:
        content[mark["position"] + 30] ^= 1  # inside the header: the CRC that stands there still fits nothing
        content[mark["position"] + 17] ^= 1
        path.write_bytes(content)
        assert position_in(path, segment) is None
        content = bytearray(b"".join(log))


@settings(max_examples=50, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), count=st.integers(1, 25))
def test_batches_that_a_new_leader_wrote_again_are_read_again(path, data, seed, count):
    """After an unclean election the producers' retries are the same bytes, but for the epoch of the leader."""
    log = batches(seed, count)
    _, segment = night_of(path, b"".join(log))
    cut = data.draw(st.integers(0, count - 1))
    again = [batch[:12] + (1).to_bytes(4, "big") + batch[16:] for batch in log[cut:]]
    path.write_bytes(b"".join([*log[:cut], *again]))
    assert position_in(path, segment) is None


def test_a_last_batch_that_is_damaged_since_is_no_place_to_resume(path):
    log = batches(7, 10)
    _, segment = night_of(path, b"".join(log))
    content = bytearray(b"".join(log))
    content[-1] ^= 1
    path.write_bytes(content)
    assert position_in(path, segment) is None


def test_a_last_batch_that_the_next_one_denies_is_no_place_to_resume(path):
    """No CRC covers an offset: that the last batch had a wrong one shows only at the batch behind it."""
    end = 5
    log = [to_bytes(N(at=at, ts=TS)) for at in (*range(end), end + 9)]
    _, segment = night_of(path, b"".join(log))
    path.write_bytes(b"".join([*log, to_bytes(N(at=end + 1, ts=TS))]))
    assert position_in(path, segment) is None


def test_a_segment_that_shrank_is_read_whole(path):
    log = batches(7, 10)
    _, segment = night_of(path, b"".join(log))
    path.write_bytes(b"".join(log)[:-1])
    assert position_in(path, segment) is None


def test_landmarks_stand_where_they_were_asked_to(path):
    log = batches(3, 60)
    _, segment = night_of(path, b"".join(log))
    positions = [mark["position"] for mark in segment["landmarks"]]
    starts = [row["position"] for row in rows("record_batches", path)]
    firsts = {position // 300: position for position in reversed(starts)}
    assert positions == sorted({*firsts.values(), starts[-1]})
