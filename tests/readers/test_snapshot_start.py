"""The snapshot at which reading a log begins. Rows B41, B42, L34, L35, L50."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log_bytes import encode_snapshot
from tests.support.log_notation import D
from tests.support.partition_state import PartitionState
from txnlib.core.kafka.broker_files import read_producer_snapshot
from txnlib.readers.capture import Capture, FileKind, list_capture
from txnlib.readers.file_splits import start_at_snapshots

LOG = [D(1, 0, n, at=n) for n in range(6)]


def snapshot_at(offset: int) -> bytes:
    return encode_snapshot(PartitionState().append_all(LOG[:offset]).producers)


def captured(folder: Path, segments: list[int], snapshots: list[int], corrupt: list[int]) -> Capture:
    """A partition with segments at base offsets, and snapshots, of which some end too early."""
    place = folder / "orders-0"
    place.mkdir()
    for base in segments:
        (place / f"{base:020}.log").write_bytes(b"")
    for offset in snapshots:
        (place / f"{offset:020}.snapshot").write_bytes(snapshot_at(offset)[: -1 if offset in corrupt else None])
    return list_capture([str(folder)])


def read_from(capture: Capture) -> list[int]:
    return [file.offset for file in start_at_snapshots(capture).of_kind(FileKind.SEGMENT)]


#: segments, snapshots, corrupt ones -> segments that are read.
STARTS = [
    pytest.param([1, 2, 3], [1, 2, 3, 4, 5], [], [3], id="B41 the newest in range"),
    pytest.param([1, 2, 3], [1, 2, 3, 4, 5], [3], [2, 3], id="B41 the oldest in range, if the newest is corrupt"),
    pytest.param([1, 2, 3], [4, 5], [], [1, 2, 3], id="B41 none in range"),
    pytest.param([0, 2, 4], [2, 4], [], [4], id="L34 only the last segment"),
    pytest.param([0, 2, 4], [], [], [0, 2, 4], id="L35 without snapshots the whole log"),
    pytest.param([0, 1, 2], [1, 2, 3, 4], [], [2], id="L50 neither a stray one nor the largest, which ends the log"),
    pytest.param([0, 1, 2, 4], [1, 2, 3, 4], [], [4], id="L50 the largest, once a segment begins there"),
    pytest.param([0, 1, 2, 4], [1, 2, 3, 4], [4], [2, 4], id="L50 never the stray one"),
]


@pytest.mark.parametrize(("segments", "snapshots", "corrupt", "expected"), STARTS)
def test_reading_begins_at_the_newest_usable_snapshot_of_a_segment(
    tmp_path: Path, segments: list[int], snapshots: list[int], corrupt: list[int], expected: list[int]
) -> None:
    assert read_from(captured(tmp_path, segments, snapshots, corrupt)) == expected


@pytest.mark.parametrize("name", ["nights-3.9", "causes-3.9"])
def test_B42_a_snapshot_is_named_after_the_end_of_the_log_that_it_holds(captures: Path, name: str) -> None:
    """Real ones: all that their producers wrote last lies below the offset in the name."""
    found = list_capture([str(captures / name)]).of_kind(FileKind.PRODUCER_SNAPSHOT)
    below = [
        (state.last_offset or 0) < file.offset
        for file in found
        for state in read_producer_snapshot(Path(file.path).read_bytes()).values()
    ]

    assert below
    assert all(below)


@pytest.mark.parametrize("name", [f"{3:020}.snapshot.deleted", f"{3:020}.snapshot.tmp"])
def test_B42_a_snapshot_on_its_way_out_or_in_is_none(tmp_path: Path, name: str) -> None:
    capture = captured(tmp_path, [0], [1], [])
    (tmp_path / "orders-0" / name).write_bytes(snapshot_at(3))

    assert list_capture([str(tmp_path)]).files == capture.files
