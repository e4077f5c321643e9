"""Fetch responses become segments of whole batches, each once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import google_crc32c
import pytest

from tests.support.fake_brokers import batch
from tests.support.log_bytes import encode_legacy
from tests.support.wire_captures import log_of
from txnlib.wire_capture import fetch
from txnlib.wire_capture.fetch import DamagedError, FetchedLog

BATCHES = [batch(10, epoch=3), batch(12, 3, epoch=3), batch(15, 1, epoch=4)]
WHOLE = b"".join(BATCHES)


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
def test_a_response_cut_at_any_byte_leaves_whole_batches(tmp_path: Path, cut: int) -> None:
    log = FetchedLog(tmp_path, None, 10)
    log.append(WHOLE[:cut], 100)
    sizes = [len(BATCHES[0]), len(BATCHES[0] + BATCHES[1]), len(WHOLE)]
    expected = max([size for size in sizes if size <= cut], default=0)
    assert log_of(log.folder) == WHOLE[:expected]
    assert log.next_offset == {0: 10, sizes[0]: 12, sizes[1]: 15, sizes[2]: 16}[expected]
    assert log.total == expected


def test_batches_from_the_end_on_are_left_out(tmp_path: Path) -> None:
    log = FetchedLog(tmp_path, None, 10)
    log.append(WHOLE, 12)
    assert log_of(log.folder) == BATCHES[0]


#: Bytes of a batch that its CRC does not cover: the first three fields.
UNCOVERED = 16


@pytest.mark.parametrize("at", range(len(BATCHES[1])))
def test_a_changed_byte_of_a_batch_is_not_kept(tmp_path: Path, at: int) -> None:
    log, changed = FetchedLog(tmp_path, None, 10), bytearray(WHOLE)
    changed[len(BATCHES[0]) + at] ^= 0x80
    with (
        suppress(DamagedError) if at < UNCOVERED else pytest.raises(DamagedError, match="the batch at offset 12, up to")
    ):
        log.append(bytes(changed), 16, 4)
    # A length that is too large looks like a batch that is cut.
    assert log_of(log.folder) == BATCHES[0]
    assert log.next_offset == 12


@pytest.mark.parametrize(
    "batches",
    [
        [BATCHES[0], batch(14, epoch=3), BATCHES[2]],
        [BATCHES[0], batch(40, epoch=3), BATCHES[2]],
        [BATCHES[0], batch(12, 3, epoch=2), BATCHES[2]],
        [BATCHES[0], batch(12, 3, epoch=5), BATCHES[2]],
        [BATCHES[0], batch(10, epoch=3), BATCHES[1]],
        [BATCHES[0], batch(13, epoch=3)],
    ],
    ids=["overlaps", "leaps", "older epoch", "newer epoch", "there already", "gap at the end of the answer"],
)
def test_what_no_crc_covers_is_believed_if_it_comes_twice(tmp_path: Path, batches: list[bytes]) -> None:
    log = FetchedLog(tmp_path, None, 10)
    with pytest.raises(DamagedError, match="does not fit what is before offset 12"):
        log.append(b"".join(batches), 50, 4)
    assert (log_of(log.folder), log.next_offset) == (BATCHES[0], 12)
    with suppress(DamagedError):  # at what follows it
        log.append(b"".join(batches[1:]), 50, 4)
    assert log_of(log.folder).startswith(BATCHES[0] if batches[1] == BATCHES[0] else BATCHES[0] + batches[1])


def test_a_gap_that_compaction_left_is_no_damage(tmp_path: Path) -> None:
    log, compacted = FetchedLog(tmp_path, None, 5), [batch(7, epoch=3), batch(20, epoch=3), batch(40, epoch=4)]
    log.append(b"".join(compacted) + batch(50, epoch=4)[:20], 100, 4)
    assert (log_of(log.folder), log.next_offset) == (b"".join(compacted), 42)


@pytest.mark.parametrize("count", [4, 1_000_000])
def test_a_batch_that_ends_behind_the_high_watermark_is_not_kept(tmp_path: Path, count: int) -> None:
    log, forged = FetchedLog(tmp_path, None, 10), bytearray(BATCHES[1])
    forged[23:27] = (count - 1).to_bytes(4, "big")
    forged[17:21] = google_crc32c.value(bytes(forged[21:])).to_bytes(4, "big")
    with pytest.raises(DamagedError, match=f"the batch at offset 12, up to {12 + count - 1}, is damaged"):
        log.append(BATCHES[0] + forged, 15)
    assert (log_of(log.folder), log.next_offset) == (BATCHES[0], 12)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_older_formats_have_a_crc_too(tmp_path: Path, magic: int) -> None:
    message = encode_legacy(10, b"k", b"v", magic=magic)
    log = FetchedLog(tmp_path, None, 10)
    log.append(message, 12)
    assert (log_of(log.folder), log.next_offset) == (message, 11)
    with pytest.raises(DamagedError):
        log.append(encode_legacy(11, b"k", b"v", magic=magic)[:-1] + b"w", 12)


def test_a_batch_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    log = FetchedLog(tmp_path, None, 10)
    log.append(BATCHES[0] + BATCHES[1], 100)
    with pytest.raises(DamagedError):
        log.append(BATCHES[1] + BATCHES[2], 100)
    log.append(BATCHES[1] + BATCHES[2], 100)
    assert log_of(log.folder) == WHOLE
    assert (log.first_offset, log.next_offset, log.last_epoch) == (10, 16, 4)


def test_the_first_segment_is_named_after_the_batch_that_contains_the_offset(tmp_path: Path) -> None:
    log = FetchedLog(tmp_path, None, 13)
    log.append(BATCHES[1], 100)
    assert [path.name for path in tmp_path.iterdir()] == [f"{12:020d}.log"]
    assert log.first_offset == 12


def test_a_new_segment_begins_when_one_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_SEGMENT_BYTES", len(BATCHES[0]))
    log = FetchedLog(tmp_path, None, 10)
    log.append(WHOLE, 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{base:020d}.log" for base in (10, 12, 15)]
    assert log_of(log.folder) == WHOLE


def test_what_was_written_behind_the_last_note_is_cut_off(tmp_path: Path) -> None:
    log = FetchedLog(tmp_path, None, 10)
    log.append(BATCHES[0], 100)
    with (tmp_path / f"{10:020d}.log").open("ab") as file:
        file.write(b"half a batch")
    log.flush()
    assert log_of(log.folder) == BATCHES[0]
