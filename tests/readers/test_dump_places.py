"""The partition, copy and file of each row of a dump."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.dumps import (
    COORDINATOR_PATH,
    PATH,
    Batch,
    dumped,
    lines_in,
    marker,
    print_dump,
    read_lines,
    rows,
    unreadable,
)
from tests.support.samples import sample
from txnlib.core.text.lines import UnreadableReason
from txnlib.readers import arrow_schemas
from txnlib.readers.text_events import looks_like_dump

LOG = (Batch(), marker("COMMIT"))
HEX = "0123456789abcdef0123456789abcdef"


def places(text: bytes, topic_partition: tuple[str, int] | None = None) -> list[tuple[Any, ...]]:
    found = rows("segments", text, topic_partition)
    return [(row["topic"], row["partition"], row["source"], row["segment_base_offset"]) for row in found]


@pytest.mark.parametrize(
    ("folder", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("ORDERS-1", "ORDERS", 1),  # as tickets are called
        ("a.b_c-d-1-17", "a.b_c-d-1", 17),
        ("__transaction_state-49", "__transaction_state", 49),
        (f"orders-3.{HEX}-future", "orders", 3),
    ],
)
def test_the_folder_names_the_partition(folder: str, topic: str, partition: int) -> None:
    text = print_dump(*LOG, path=f"/data/{folder}/00000000000000000123.log")

    assert places(text) == [(topic, partition, "text:1", 123)]
    assert {(row["topic"], row["partition"]) for row in rows("record_batches", text)} == {(topic, partition)}


@pytest.mark.parametrize(
    "path", ["C:\\kafka\\data\\orders-0\\00000000000000000000.log", "orders-0/00000000000000000000.log"]
)
def test_paths_of_windows_and_relative_ones_do(path: str) -> None:
    assert places(print_dump(*LOG, path=path)) == [("orders", 0, "text:1", 0)]


@pytest.mark.parametrize("state", ["delete", "stray"])
def test_folders_on_their_way_out_are_left_out(state: str) -> None:
    text = print_dump(*LOG, path=f"/data/orders-0.{HEX}-{state}/00000000000000000000.log") + print_dump(*LOG)

    assert places(text) == [("orders", 0, "text:1", 0)]
    assert len(rows("record_batches", text)) == 2


@pytest.mark.parametrize(
    "path", ["00000000000000000000.log", "/tmp/copy/00000000000000000000.log", "/x/no hyphen/0.log"]
)
def test_a_partition_that_the_path_does_not_name_comes_from_elsewhere(path: str) -> None:
    text = print_dump(*LOG, path=path)

    assert rows("record_batches", text) == []
    (segment,) = rows("segments", text)
    assert (segment["topic"], segment["batches"], segment["end_offset"]) == (None, 2, 2)
    assert unreadable(text) == [(UnreadableReason.TOPIC_PARTITION_UNKNOWN, 0, len(text))]
    assert segment["unreadable"][0]["sample"] == path

    known = rows("record_batches", text, ("payments", 7))
    assert {(row["topic"], row["partition"]) for row in known} == {("payments", 7)}
    assert [row["unreadable"] for row in rows("segments", text, ("payments", 7))] == [[]]


def test_the_path_counts_more_than_what_comes_from_elsewhere() -> None:
    assert places(print_dump(*LOG), ("payments", 7)) == [("orders", 0, "text:1", 0)]


@pytest.mark.parametrize("folder", ["", "INC-48213/", "/home/me/INC-48213/"])
def test_coordinator_records_without_a_partition_are_read_as_console_text(folder: str) -> None:
    text = dumped("4.3-txnstate").replace(b"/var/lib/kafka/data/__transaction_state-7/", folder.encode())

    whole = rows("transaction_log", dumped("4.3-txnstate"))
    assert rows("transaction_log", text) == rows("record_batches", text) == []
    (found,) = rows("segments", text)
    assert (found["kind"], found["source"], found["topic"]) == ("console", "console:1", "__transaction_state")
    assert (found["partition"], found["batches"], found["unreadable"]) == (None, len(whole), [])
    shown = rows("console_log", text)
    assert [(row["transactional_id"], row["state"]) for row in shown] == [
        (row["transactional_id"], row["state"]) for row in whole
    ]
    assert [row["position"] for row in shown] == list(range(len(whole)))
    assert {row["partition"] for row in rows("transaction_log", text, ("__transaction_state", 7))} == {7}


def test_the_middle_of_a_dump_is_read() -> None:
    text = print_dump(*LOG, start=(100, 5_000))
    text = text[text.index(b"baseOffset") :]

    assert [row["position"] for row in rows("record_batches", text, ("orders", 0))] == [5_000, 5_120]
    assert unreadable(text)[0][0] == UnreadableReason.TOPIC_PARTITION_UNKNOWN


def test_log_directories_are_copies() -> None:
    parts = ["/d1/orders-0", "/d2/orders-1", "/d1/orders-2", "/d2/orders-0"]
    text = b"".join(print_dump(*LOG, path=f"{part}/00000000000000000000.log") for part in parts)

    assert places(text) == [
        ("orders", 0, "text:1", 0),
        ("orders", 1, "text:1:/d2", 0),
        ("orders", 2, "text:1", 0),
        ("orders", 0, "text:1:/d2", 0),
    ]
    sources = [row["source"] for row in rows("record_batches", text)]
    assert sources == [source for _, _, source, _ in places(text) for _ in range(2)]


def test_every_dumped_log_has_a_row() -> None:
    second = PATH.replace("00.log", "02.log")
    text = (
        print_dump(*LOG)
        + print_dump(path=second)
        + dumped("3.9-snapshot")
        + dumped("txnindex")
        + print_dump(*LOG, path=second, start=(9, 0))
        + b"Dumping /d/orders-0/00000000000000000000.index\noffset: 5 position: 5\n"
        + b"Dumping /d/orders-0/00000000000000000000.timeindex\ntimestamp: 5 offset: 5\n"
        + b"Dumping /d/orders-0/00000000000000000000.log.deleted\n"
    )

    found = rows("segments", text)

    columns_compared = ("segment_base_offset", "first_offset", "end_offset", "bytes", "batches", "tail", "is_decoded")
    assert [tuple(row[column] for column in columns_compared) for row in found] == [
        (0, 0, 2, 198, 2, "CLEAN", True),
        (2, None, None, 0, 0, "CLEAN", True),
        (2, 9, 11, 198, 2, "CLEAN", True),
    ]
    assert [row["unreadable"] for row in found] == [[], [], []]
    assert len(rows("producer_snapshots", text)) == 7


def test_offset_gaps_are_those_within_a_file() -> None:
    text = print_dump(*LOG, Batch(extra={"baseOffset": 7, "lastOffset": 7}), deep=False)
    text += print_dump(*LOG, start=(20, 0), deep=False)

    assert [row["offset_gap"] for row in rows("record_batches", text)] == [None, 0, 5, None, 0]
    assert [row["last_gap_offset"] for row in rows("segments", text)] == [7, None]


TIMES = {
    "data by its producer": (print_dump(Batch(producer_id=-1)), None),
    "a marker": (print_dump(marker("COMMIT")), 1_710_120_000_000),
    "a control batch of KRaft": (print_dump(Batch(producer_id=-1, extra={"isControl": "true"}), deep=False), None),
    "a coordinator's record": (print_dump(Batch(producer_id=-1), path=COORDINATOR_PATH), 1_710_120_000_000),
}


@pytest.mark.parametrize("name", TIMES)
def test_the_newest_time_of_a_broker(name: str) -> None:
    text, expected = TIMES[name]

    assert [row["newest_broker_ms"] for row in rows("segments", text)] == [expected]
    by_broker = text.replace(b"CreateTime", b"LogAppendTime")
    assert [row["newest_broker_ms"] for row in rows("segments", by_broker)] == [1_710_120_000_000]
    assert [row["timestamp_type"] for row in rows("record_batches", by_broker)] == ["LOG_APPEND_TIME"]


DECODED = {
    "a shallow dump": (print_dump(*LOG, deep=False), False),
    "without markers": (print_dump(Batch(), deep=False), True),
    "with markers": (print_dump(*LOG), True),
    "without metadata": (print_dump(*LOG, skip_record_metadata=True), False),
    "an emptied marker": (
        print_dump(Batch(), Batch(marker="ABORT", records=(), extra={"lastOffset": 1}), deep=False),
        True,
    ),
    "a shallow coordinator": (print_dump(Batch(producer_id=-1), path=COORDINATOR_PATH, deep=False), False),
    "a coordinator without decoder": (print_dump(Batch(producer_id=-1), path=COORDINATOR_PATH), False),
    "an empty coordinator": (print_dump(path=COORDINATOR_PATH), True),
}


@pytest.mark.parametrize("name", DECODED)
def test_whether_records_were_printed(name: str) -> None:
    text, expected = DECODED[name]

    assert [row["is_decoded"] for row in rows("segments", text)] == [expected]


def test_a_broken_snapshot_is_not_said_to_be_whole() -> None:
    lines = dumped("3.9-snapshot").splitlines(keepends=True)
    for broken in ([*lines[:3], b"producerId: 4003 producerEp\n", *lines[4:]], [*lines[:3], lines[3][:-1]], lines[:1]):
        found = rows("producer_snapshots", b"".join(broken))
        assert all(row["producer_id"] is not None for row in found)


def test_rows_come_in_batches_of_the_declared_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_schemas, "ROWS_PER_BATCH", 3)
    text = print_dump(*[Batch() for _ in range(4)])
    text += print_dump(*[Batch() for _ in range(4)], path=PATH.replace("orders", "payments"))
    text += dumped("4.3-txnstate") + dumped("3.9-snapshot") + b"noise\n"

    for table in ("record_batches", "transaction_log", "segments", "producer_snapshots"):
        batches = list(read_lines(table, lines_in(text)))
        assert {batch.schema for batch in batches} == {arrow_schemas.TABLES[table]}
        assert [batch.num_rows for batch in batches[:-1]] == [3] * (len(batches) - 1)
        assert 1 <= batches[-1].num_rows <= 3
    assert [row["topic"] for row in rows("record_batches", text)] == (
        ["orders"] * 4 + ["payments"] * 4 + ["__transaction_state"] * 8
    )


LOOKS = {
    "a dump": (print_dump(*LOG), True),
    "a dump of a snapshot": (dumped("3.9-snapshot"), True),
    "a dump of an empty log": (print_dump(), True),
    "batch lines": (dumped("1.1-partition-batch").split(b"\n", 2)[2], True),
    "record lines": (dumped("2.1-partition-deep").split(b"\n", 2)[2], True),
    "a dump behind noise": (b"$ kafka-dump-log.sh\nSLF4J: x\n\n" + print_dump(*LOG), True),
    "a dump with a byte order mark": (b"\xef\xbb\xbf" + dumped("3.9-partition"), True),
    "the same of an empty log": (b"\xef\xbb\xbf" + print_dump(), True),
    "a dump with binary payloads": (dumped("real-4.3.0-print-data-log-txnstate"), True),
    "converted line ends": (dumped("3.9-partition").replace(b"\n", b"\r\n"), True),
    "a segment": (sample("payments-0.log"), False),
    "a segment whose payload is a dump": (sample("payments-0.log") + b"\n" + print_dump(*LOG), False),
    "a snapshot": (sample("payments-0.snapshot"), False),
    "nothing": (b"", False),
    "a text": (b"Dumping core\nbaseOffset: \n| offset: \noffset: 5 position: 5\n", False),
    "a checkpoint": (b"0\n1\norders 0 5\n", False),
}


@pytest.mark.parametrize("name", LOOKS)
def test_content_tells_a_dump(name: str) -> None:
    head, expected = LOOKS[name]

    assert looks_like_dump(head) is expected
