"""Readers of `__cluster_metadata`: segments, snapshots, and text of four tools."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.log_bytes import encode_batch
from tests.support.segments import opened, read_rows, rows_of_file
from txnlib.core.kafka.metadata_records import NO_OP_VALUE
from txnlib.core.kafka.record_batch import Record
from txnlib.readers.batch_headers import Block
from txnlib.readers.capture import CaptureFile, FileKind, list_capture
from txnlib.readers.decoded_metadata import iter_metadata_records
from txnlib.readers.segment import Segment

TOPIC_VALUE = b"\x01\x02\x00\x07orders" + bytes(16) + b"\x00"
T0 = 1_700_000_000_000


def rows_of(path: Path, table: str = "metadata_log"):
    files = list_capture([str(path)]).files
    return [row for file in files for row in rows_of_file(table, file)]


def comparable(rows, *without):
    left_out = {"source", "path", "position", *without}
    plain = [{name: value for name, value in row.items() if name not in left_out} for row in rows]
    return sorted(plain, key=lambda row: (row["snapshot_offset"] or -1, row["offset"]))


def of_broker_1(captures: Path, tool: str, tmp_path: Path) -> Path:
    shutil.copytree(captures / "md-4.1" / "dumps" / f"metadata-{tool}", tmp_path / tool)
    return tmp_path / tool


@pytest.mark.parametrize("tool", ["4.1.1", "4.3.1"])
def test_text_and_bytes_are_the_same_records(captures, tmp_path, tool):
    raw = rows_of(captures / "md-4.1" / "brokers" / "1")
    assert len(raw) > 600
    assert comparable(rows_of(of_broker_1(captures, tool, tmp_path))) == comparable(raw)


def test_an_older_tool_names_the_number_of_a_type_that_it_does_not_know(captures, tmp_path):
    raw = comparable(rows_of(captures / "md-4.1" / "brokers" / "1"), "version")
    text = comparable(rows_of(of_broker_1(captures, "3.9.1", tmp_path)), "version")
    cleared = [row for row in raw if row["type"] == "CLEAR_ELR_RECORD"]
    assert {row["name"] for row in cleared} == {"__transaction_state", "md-ledger"}
    for row in cleared:
        row["name"] = None  # the tool prints the number of the type, and nothing of its content
    assert text == raw


def test_what_a_much_older_tool_cannot_print_is_quarantined(captures, tmp_path):
    folder = of_broker_1(captures, "3.5.2", tmp_path)
    read = comparable(rows_of(captures / "md-4.1" / "brokers" / "1"), "version")
    raw = {(row["snapshot_offset"], row["offset"]): row for row in read}
    text = comparable(rows_of(folder), "version")
    for row in text:
        printed = {name for name, value in row.items() if value is not None}
        assert {name: row[name] for name in printed} == {
            name: raw[row["snapshot_offset"], row["offset"]][name] for name in printed
        }
    assert {row["type"] for row in text} >= {"TOPIC_RECORD", "CONFIG_RECORD", "LEADER_CHANGE"}
    reasons = [each["reason"] for row in rows_of(folder, "segments") for each in row["unreadable"] or ()]
    assert "UNDECODABLE_RECORD" in reasons


@pytest.mark.parametrize("capture", ["md-4.1", "old-disk-4.1"])
@pytest.mark.parametrize("broker", ["1", "2", "3"])
def test_recognised_no_ops_are_those_that_decoding_finds(captures, capture, broker):
    """The fast path against the slow one: each record of each batch, decoded."""
    for file in list_capture([str(captures / capture / "brokers" / broker)]).files:
        if file.topic == "__cluster_metadata" and file.kind is FileKind.SEGMENT:
            content = Path(file.path).read_bytes()
            segment = of_bytes(content)
            decoded = {
                record.offset: (record.timestamp, found.type)
                for block in segment.blocks()
                if isinstance(block, Block)
                for position, length in zip(block.positions, block.headers["batch_length"], strict=True)
                for record, found in iter_metadata_records(content[int(position) : int(position) + int(length) + 12])
            }
            told = {}
            for row in read(segment):
                for offset in range(row["offset"], row["last_offset"] + 1):
                    told[offset] = row["type"]
                assert decoded[row["last_offset"]] == (row["timestamp_ms"], row["type"])
            assert told == {offset: kind for offset, (_, kind) in decoded.items()}


def of_bytes(content: bytes) -> Segment:
    return opened(content, "__cluster_metadata")


def read(segment: Segment):
    return read_rows("metadata_log", segment)


def log(*values: tuple[bytes, int]) -> bytes:
    """One batch per value, each in a leader epoch."""
    batches = [(n, Record(n, T0 + n, None, value), epoch) for n, (value, epoch) in enumerate(values)]
    return b"".join(encode_batch([record], leader_epoch=epoch) for _, record, epoch in batches)


IDLE = NO_OP_VALUE
SMALL = log((TOPIC_VALUE, 1), (IDLE, 1), (IDLE, 1), (IDLE, 2), (TOPIC_VALUE, 2), (b"\x01\x18\x00\x00", 2), (IDLE, 2))
SPANS = [
    ("TOPIC_RECORD", 0, 0, 1),
    ("NO_OP_RECORD", 1, 2, 1),
    ("NO_OP_RECORD", 3, 3, 2),
    ("TOPIC_RECORD", 4, 4, 2),
    ("END_TRANSACTION_RECORD", 5, 5, 2),
    ("NO_OP_RECORD", 6, 6, 2),
]


def spans(rows):
    return [(row["type"], row["offset"], row["last_offset"], row["controller_epoch"]) for row in rows]


def test_idle_periods_are_one_row_for_each_leader_epoch():
    rows = read(of_bytes(SMALL))
    assert spans(rows) == SPANS
    assert [row["timestamp_ms"] - T0 for row in rows] == [0, 2, 3, 4, 5, 6]


def test_a_cut_log_gives_the_records_before_the_cut():
    seen = set()
    for end in range(len(SMALL) + 1):
        rows = read(of_bytes(SMALL[:end]))
        offsets = [offset for row in rows for offset in range(row["offset"], row["last_offset"] + 1)]
        assert offsets == list(range(len(offsets)))
        seen.add(len(offsets))
    assert seen == set(range(8))


def test_no_flipped_bit_makes_another_record():
    whole = {(kind, offset) for kind, first, last, _ in SPANS for offset in range(first, last + 1)}
    for position in range(0, len(SMALL) * 8, 3):
        damaged = bytearray(SMALL)
        damaged[position // 8] ^= 1 << position % 8
        for row in read(of_bytes(bytes(damaged))):
            if row["type"] == "NO_OP_RECORD" or row["name"] == "orders" or row["type"] == "END_TRANSACTION_RECORD":
                continue
            assert (row["type"], row["offset"]) in whole, position


def test_an_undecodable_record_is_named_and_harms_no_other():
    content = log((TOPIC_VALUE, 1), (b"\x01\x03\x09\x00", 1), (TOPIC_VALUE, 1))
    assert [row["offset"] for row in read(of_bytes(content))] == [0, 2]
    (row,) = read_rows("segments", of_bytes(content))
    (unreadable,) = row["unreadable"]
    assert unreadable["reason"].startswith("UNDECODABLE_RECORD: offset 1, version 9 of PARTITION_RECORD is not known")
    assert row["newest_broker_ms"] == T0 + 2


def test_a_snapshot_is_listed_with_its_offset_and_its_damage_is_quarantined(tmp_path):
    folder = tmp_path / "1" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(SMALL)
    path = folder / "00000000000000000042-0000000003.checkpoint"
    path.write_bytes(SMALL[:-1])
    (folder / "00000000000000000043-0000000003.checkpoint.part").write_bytes(b"half")
    (tmp_path / "1" / "bootstrap.checkpoint").write_bytes(SMALL)
    files = [file for file in list_capture([str(tmp_path)]).files if file.kind is FileKind.METADATA_SNAPSHOT]
    assert [(Path(file.path), file.offset) for file in files] == [(path, 42)]
    rows = rows_of_file("metadata_log", files[0])
    assert {row["snapshot_offset"] for row in rows} == {42}
    assert [row["offset"] for row in rows] == [0, 1, 3, 4, 5]
    (problem,) = rows_of_file("segments", files[0])
    assert (problem["kind"], problem["unreadable"][0]["reason"][:16]) == ("metadata_snapshot", "INCOMPLETE_BATCH")
    path.write_bytes(SMALL)
    assert rows_of_file("segments", replace(files[0], size=len(SMALL))) == []


def test_topic_ids_are_read_and_a_broken_one_is_quarantined(tmp_path):
    path = tmp_path / "partition.metadata"
    file = CaptureFile(str(path), FileKind.CHECKPOINT, "raw:1", 43, "orders", 3)
    path.write_text("version: 0\ntopic_id: LGZl8h6BRhictbv8FkC-vg")
    (row,) = rows_of_file("checkpoints", file)
    assert (row["name"], row["topic"], row["partition"], row["topic_id"]) == (
        "topic_id",
        "orders",
        3,
        "LGZl8h6BRhictbv8FkC-vg",
    )
    for broken in ("", "version: 0\n", "version: 1\ntopic_id: LGZl8h6BRhictbv8FkC-vg", "version: 0\ntopic_id: LGZl"):
        path.write_text(broken)
        assert rows_of_file("checkpoints", file) == []
        (problem,) = rows_of_file("segments", file)
        assert problem["unreadable"][0]["reason"].startswith("CORRUPT_CHECKPOINT")
