"""Dumps of every generation of the tool against the bytes of one log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.dumps import dumped, rows
from tests.support.samples import START, sample
from tests.support.segments import opened, read_rows
from txnlib.readers.text_events import looks_like_dump

#: Copies differ in these, and batches in memory from text in the order of a list.
NOT_COMPARED = ("source", "path")


def raw_rows(table: str, name: str, topic: str, partition: int) -> list[dict[str, Any]]:
    """What the raw reader makes of the bytes that the samples are dumps of."""
    return read_rows(table, opened(sample(name), topic, partition))


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def as_printed(row: dict[str, Any], not_printed: tuple[str, ...]) -> dict[str, Any]:
    return without(row, *NOT_COMPARED) | dict.fromkeys(not_printed)


MARKER = ("control_type", "coordinator_epoch")
HORIZON = ("delete_horizon_ms",)
#: dump -> columns that its tool does not print
PARTITION_DUMPS = {
    "2.7-partition-batch": (*MARKER, *HORIZON),
    "2.8-partition-deep": HORIZON,
    "3.1-partition-deep": HORIZON,
    "3.2-partition-deep": (),
    "3.9-partition": (),
    "3.9-partition-batch": MARKER,
    "3.9-partition-deep-noprint": (),
}


@pytest.mark.parametrize("name", PARTITION_DUMPS)
def test_every_generation_tells_the_same_of_a_partition(name: str) -> None:
    expected = [
        as_printed(row, PARTITION_DUMPS[name]) for row in raw_rows("record_batches", "payments-0.log", "payments", 0)
    ]

    actual = rows("record_batches", dumped(name))

    assert [without(row, *NOT_COMPARED) for row in actual] == expected
    assert {row["source"] for row in actual} == {"text:1"}


OLD = {
    *(
        "0.11.0.0-partition-deep",
        "1.1-partition-batch",
        "2.0.0-partition-batch",
        "2.1-partition-batch",
        "2.1-partition-deep",
    ),
    *("2.7-partition-deep", "2.1-legacy-magic-batch", "2.1-legacy-magic-deep", "2.7-legacy-magic-deep", "2.1-txnstate"),
    *("2.4.0-txnstate-scala213", "2.4.1-txnstate-scala212", "2.7-txnstate", "0.11-snapshot", "1.0.0-snapshot"),
}


@pytest.mark.parametrize("name", sorted(OLD))
def test_lines_that_only_tools_before_2_8_print_are_quarantined_and_named(name: str) -> None:
    text = dumped(name)

    assert looks_like_dump(text)
    assert not rows("transaction_log", text) + rows("producer_snapshots", text)
    assert {row["control_type"] for row in rows("record_batches", text)} <= {None}
    (found,) = rows("segments", text)
    assert found["unreadable"][0]["reason"] == "OLD_TOOL: printed by a tool before Kafka 2.8"
    assert found["tail"] != "CLEAN" or "snapshot" in name


SEGMENT = {
    "topic": "payments",
    "partition": 0,
    "source": "text:1",
    "path": "dump.txt",
    "kind": "text",
    "segment_base_offset": 0,
    "first_offset": 0,
    "end_offset": 16,
    "last_gap_offset": None,
    "bytes": 952,
    "batches": 11,
    "tail": "TORN",
    "is_decoded": True,
    "newest_broker_ms": START + 62_000,
    "unreadable": [],
    "landmarks": None,
    "version": None,
    "parts": None,
}


@pytest.mark.parametrize("name", PARTITION_DUMPS)
def test_every_generation_tells_the_same_of_a_segment(name: str) -> None:
    is_decoded = not {*MARKER} <= {*PARTITION_DUMPS[name]}

    assert rows("segments", dumped(name)) == [SEGMENT | {"is_decoded": is_decoded}]


@pytest.mark.parametrize("name", ["3.9-partition-skip-record-metadata", "4.3-partition-skip-record-metadata"])
def test_contents_without_metadata_have_no_sizes_so_that_reading_ends_there(name: str) -> None:
    (found,) = rows("segments", dumped(name))

    assert [row["base_offset"] for row in rows("record_batches", dumped(name))] == [0]
    assert (found["tail"], found["unreadable"][0]["reason"].partition(":")[0]) == ("UNMEASURED", "SIZE_MISMATCH")


@pytest.mark.parametrize("name", ["2.8-legacy-magic-deep", "3.9-legacy-magic-deep", "4.3-legacy-magic-deep"])
def test_every_generation_tells_the_same_of_message_formats_0_and_1(name: str) -> None:
    actual = [tuple(row[name] for name in LEGACY_COLUMNS) for row in rows("record_batches", dumped(name))]

    assert actual == [
        (0, 0, 0, 30, 0, None, None, "none", 2258072140),
        (1, 1, 30, 36, 1, START, 0, "none", 3933257942),
        (3, 3, 66, 94, 1, START + 11, None, "gzip", 2645690768),  # a set: its first offset is not printed
    ]
    (found,) = rows("segments", dumped(name))
    assert (found["end_offset"], found["last_gap_offset"], found["tail"], found["is_decoded"]) == (
        4,
        None,
        "CLEAN",
        True,
    )


LEGACY_COLUMNS = (
    *("base_offset", "last_offset", "position", "size", "magic"),
    *("max_timestamp_ms", "offset_gap", "compression_type", "crc"),
)


def test_a_real_dump_of_message_format_1_is_read_whole() -> None:
    text = dumped("real-4.3.0-legacy-v1")

    found = rows("record_batches", text)

    assert [row["base_offset"] for row in found] == list(range(14))
    assert {row["magic"] for row in found} == {1}
    assert {row["producer_id"] for row in found} == {None}
    assert rows("segments", text)[0]["unreadable"] == []


ONLY_JSON = (
    *("value_version", "start_ms", "previous_producer_id", "next_producer_id"),
    *("next_producer_epoch", "last_producer_epoch", "client_transaction_version"),
)
#: dump -> (bytes, columns that its tool does not print)
COORDINATOR_DUMPS = {
    "2.8-txnstate": ("txnstate-v0.log", ONLY_JSON),
    "3.1-txnstate": ("txnstate-v0.log", ONLY_JSON),
    "3.9-txnstate": ("txnstate-v0.log", ONLY_JSON),
    "3.9-txnstate-skip-record-metadata": ("txnstate-v0.log", ONLY_JSON),
    "4.0-txnstate": ("txnstate-v1-broker40.log", ONLY_JSON),
    "4.1-txnstate-value-v0": ("txnstate-v0.log", ()),
    "4.1-txnstate": ("txnstate-v1-broker40.log", ()),
    "4.3-txnstate": ("txnstate-v1-broker43.log", ()),
    "4.4-txnstate": ("txnstate-v1-broker43.log", ()),
}


def in_order(row: dict[str, Any]) -> dict[str, Any]:
    """Text lists partitions in the order of a hash set."""
    partitions = row["partitions"]
    return row | {"partitions": partitions and sorted(partitions, key=lambda tp: (tp["topic"], tp["partition"]))}


@pytest.mark.parametrize("name", COORDINATOR_DUMPS)
def test_every_generation_tells_the_same_of_a_coordinator(name: str) -> None:
    content, not_printed = COORDINATOR_DUMPS[name]
    raw = raw_rows("transaction_log", content, "__transaction_state", 7)
    expected = [in_order(as_printed(row, (*not_printed, "unknown_tags"))) for row in raw]

    actual = rows("transaction_log", dumped(name))

    assert [in_order(without(row, *NOT_COMPARED)) for row in actual] == expected
    (found,) = rows("segments", dumped(name))
    assert (found["tail"], found["is_decoded"], found["unreadable"]) == ("CLEAN", True, [])
    assert found["newest_broker_ms"] == max(row["timestamp_ms"] for row in raw)


def test_records_of_unknown_versions_are_named() -> None:
    text, json = dumped("3.9-txnstate-odd"), dumped("4.1-txnstate-odd")

    assert [row["transactional_id"] for row in rows("transaction_log", text)] == ["multi\nline id"]
    assert [row["transactional_id"] for row in rows("transaction_log", json)] == ["multi\nline id"]
    reasons = [[stretch["reason"] for stretch in rows("segments", dump)[0]["unreadable"]] for dump in (text, json)]
    assert reasons == [["UNKNOWN_KEY_VERSION"], ["UNKNOWN_KEY_VERSION", "UNKNOWN_VALUE_VERSION"]]


def test_coordinator_records_printed_without_the_decoder_are_not_decoded() -> None:
    text = dumped("real-4.3.0-print-data-log-txnstate")

    assert rows("transaction_log", text) == []
    assert [(row["batches"], row["is_decoded"], row["unreadable"]) for row in rows("segments", text)] == [
        (2, False, []),
        (1, False, []),
    ]


def test_records_without_metadata_take_offset_and_time_from_their_batch() -> None:
    found = rows("transaction_log", dumped("real-3.4.1-skip-record-metadata-txnstate"))

    assert [(row["offset"], row["timestamp_ms"], row["is_tombstone"]) for row in found] == [
        (9, 1795246481411, False),
        (11, 1795246481419, False),
        (12, None, True),  # two records in a batch share one printed time
        (13, None, True),
        (14, 1795246494441, False),
    ]


SNAPSHOTS = {"2.8-snapshot": ("last_timestamp_ms",), "3.4-snapshot": (), "3.9-snapshot": (), "4.3-snapshot": ()}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_generation_tells_the_same_of_a_snapshot(name: str) -> None:
    columns = (
        *("producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta"),
        *("last_timestamp_ms", "coordinator_epoch", "current_txn_first_offset"),
    )
    expected = [
        (4001, 3, 1, 1, 1, START + 120, 7, None),
        (4002, 0, 1, 4, 1, START + 900, 7, None),
        (4003, 5, 12, 6, 0, START + 1_000, None, 6),
        (4004, 0, 2, 9, 2, START + 1_102, None, None),
        (4005, 1, 21, 12, 1, START + 1_700, 8, None),
        # No batch: nothing of one is printed, and up to 3.0 no time either.
        (4006, 10, None, None, None, None if SNAPSHOTS[name] else START + 62_000, 8, None),
    ]

    found = rows("producer_snapshots", dumped(name))

    assert [tuple(row[column] for column in columns) for row in found[:-1]] == expected
    where = {"topic": "payments", "partition": 0, "source": "text:1", "path": "dump.txt", "snapshot_offset": 16}
    assert found[-1] == where | dict.fromkeys([*columns, "is_answer"]), (
        "a row without a producer says that the snapshot was read"
    )
    assert rows("segments", dumped(name)) == []


@pytest.mark.parametrize("name", [*PARTITION_DUMPS, *COORDINATOR_DUMPS, *SNAPSHOTS, "3.9-txnstate-odd"])
def test_line_ends_make_no_difference(name: str) -> None:
    text = dumped(name)
    converted = text.replace(b"\n", b"\r\n")

    for table in ("record_batches", "transaction_log", "producer_snapshots", "segments"):
        assert rows(table, converted) == rows(table, text) or name == "3.9-txnstate-odd"
        assert rows(table, text, chunk=7) == rows(table, text), "nor do the pieces in which it is read"
    assert [row["transactional_id"] for row in rows("transaction_log", converted)] == [
        row["transactional_id"] for row in rows("transaction_log", text)
    ]
