"""The names of producer snapshots. Row B42."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log_bytes import encode_snapshot
from tests.support.log_notation import D
from tests.support.partition_state import PartitionState
from txnlib.core.kafka.log_dir_files import read_producer_snapshot
from txnlib.readers.capture import FileKind, list_capture

LOG = [D(1, 0, n, at=n) for n in range(6)]


def snapshot_at(offset: int) -> bytes:
    return encode_snapshot(PartitionState().append_all(LOG[:offset]).producers)


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
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"")
    (folder / f"{1:020}.snapshot").write_bytes(snapshot_at(1))
    capture = list_capture([str(tmp_path)])
    (folder / name).write_bytes(snapshot_at(3))

    assert list_capture([str(tmp_path)]).files == capture.files
