"""Fingerprints of segments, and the positions from which to resume."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import TS, C, N, T
from tests.support.segments import read_segment, rows_of_file
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.fingerprints import ReadSegment, resume_position
from txnlib.readers.header_columns import ReaderState
from txnlib.readers.storage import files


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nights") / "00000000000000000000.log"


def rows(table: str, path: Path, *earlier: ReadSegment, part: int = 1) -> list[dict[str, Any]]:
    where = ("raw:1", path.stat().st_size, "orders", 0, 0)
    return rows_of_file(table, CaptureFile(str(path), FileKind.SEGMENT, *where, part=part, earlier=earlier))


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


def resumed(path: Path, before: bytes, after: bytes) -> ReaderState | None:
    """Where reading resumes in a segment that has changed."""
    _, segment = night_of(path, before)
    path.write_bytes(after)
    return position_in(path, segment)


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def same_as_whole(path: Path, before: list[dict[str, Any]], segment: dict[str, Any], at: ReaderState) -> None:
    """What was read before and the rest, of another part, are the rows of the whole segment."""
    known = read_segment(segment)
    rest, (together,) = rows("record_batches", path, known, part=2), rows("segments", path, known, part=2)
    assert all(row["position"] >= at.position and row["part"] == 2 for row in rest)
    assert together["parts"] == ([1, 2] if rest else [1])
    assert without(before + rest, "part") == without(rows("record_batches", path), "part")
    assert without([together], "parts") == without(rows("segments", path), "parts")


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
    cut = data.draw(st.integers(0, count - 1))
    again = [batch[:12] + (1).to_bytes(4, "big") + batch[16:] for batch in log[cut:]]
    assert resumed(path, b"".join(log), b"".join([*log[:cut], *again])) is None


def test_a_last_batch_that_was_damaged_or_cut_since_is_no_place_to_resume(path):
    log = b"".join(batches(7, 10))
    for after in (log[:-1] + bytes([log[-1] ^ 1]), log[:-1]):
        assert resumed(path, log, after) is None


def test_a_last_batch_that_the_next_one_denies_is_no_place_to_resume(path):
    """No CRC covers an offset: that the last batch had a wrong one shows only at the batch behind it."""
    end = 5
    log = b"".join(to_bytes(N(at=at, ts=TS)) for at in (*range(end), end + 9))
    assert resumed(path, log, log + to_bytes(N(at=end + 1, ts=TS))) is None


def test_the_fingerprint_is_the_first_and_the_last_batch(path):
    for count in (1, 2, 60):
        before, segment = night_of(path, b"".join(batches(3, count)))
        starts = [row["position"] for row in before]
        assert [mark["position"] for mark in segment["landmarks"]] == sorted({starts[0], starts[-1]})
