"""A console consumer's records as a copy of their coordinator partitions."""

from pyspark.sql import functions as F

from tests.support.frames import assert_rows, empty, frame, transaction_log, transaction_log_row
from tests.support.log_notation import TS, rec
from txnlib.core.coverage.captured_files import PRINTED
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.spark.coordinators.console_copies import console_records, console_segments
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES

N = 5
#: The files of the texts, by source.
PARTS = {"console:a": 1, "console:b": 2}
IDS = ["pay", "ship", "bill", "überweisung", "x"]


def printed(name, ordinal, state="O", *, source="console:a", partition=None, updated=TS):
    row = transaction_log_row(rec(state, 7, 0, {"orders-0"}), 0, 0, 0)
    unknown = {"partition": partition, "offset": None, "timestamp_ms": None, "coordinator_epoch": None}
    place = {"transactional_id": name, "position": ordinal, "source": source, "part": PARTS[source]}
    return row | unknown | place | {"last_update_ms": updated}


def place(spark, rows, others=()):
    found = console_records(transaction_log(spark, rows), transaction_log(spark, list(others)), N)
    return arrow_of(found.orderBy("source", "position")).to_pylist()


def test_an_id_stands_in_the_partition_its_hash_leads_to(spark):
    rows = place(spark, [printed(name, ordinal) for ordinal, name in enumerate(IDS)])
    assert [row["partition"] for row in rows] == [partition_for(name, N) for name in IDS]


def test_a_text_of_one_partition_keeps_its_records_there(spark):
    (row,) = place(spark, [printed("pay", 0, partition=4)])
    assert row["partition"] == 4


def test_the_order_of_the_text_is_kept_and_no_two_records_look_consecutive(spark):
    rows = place(spark, [printed("pay", 0, "O"), printed("pay", 1, "PC"), printed("pay", 2, "CC")])
    offsets = [row["offset"] for row in rows]
    assert offsets == sorted(offsets)
    assert all(offset < 0 for offset in offsets)
    assert_rows(
        coordinator_states(transaction_log(spark, rows), empty(spark, TABLES["coverage"])),
        [(False, 1)] * 3,
        "is_consecutive",
        "transaction_number",
    )


def test_only_records_that_are_written_when_they_say_so_have_a_time(spark):
    states = {"E": True, "O": True, "PC": True, "PA": True, "CC": False, "CA": False}
    rows = place(spark, [printed("pay", ordinal, state) for ordinal, state in enumerate(states)])
    assert [row["timestamp_ms"] for row in rows] == [TS if is_timed else None for is_timed in states.values()]


def test_nor_has_a_tombstone(spark):
    gone = (
        printed("pay", 0)
        | transaction_log_row("pay", 0, 0, 0)
        | {"partition": None, "offset": None, "timestamp_ms": None}
    )
    (row,) = place(spark, [gone])
    assert (row["is_tombstone"], row["timestamp_ms"], row["offset"] is not None) == (True, None, True)


def test_another_copy_of_the_partition_is_used_instead(spark):
    other = transaction_log_row(rec("O", 7, 0, {"orders-0"}), partition_for("pay", N), 12, TS)
    pay, ship = place(spark, [printed("pay", 0), printed("ship", 1)], [other])
    assert partition_for("pay", N) != partition_for("ship", N)
    assert (pay["offset"], ship["offset"] is None) == (None, False)


def test_of_several_texts_the_newest_is_used(spark):
    rows = place(spark, [printed("pay", 0), printed("pay", 0, source="console:b", updated=TS + 1)])
    assert [(row["source"], row["offset"] is not None) for row in rows] == [("console:a", False), ("console:b", True)]


def segments_of(spark, records, *unreadable):
    text = dict.fromkeys(TABLES["segments"].names) | {
        "source": "console:a",
        "path": "console:a",
        "kind": "console",
        "tail": "CLEAN",
        "parts": [PARTS["console:a"]],
    }
    lost = [{"position": 5, "length": 9, "reason": reason, "sample": "", "next_offset": None} for reason in unreadable]
    segments = frame(spark, TABLES["segments"], text | {"is_decoded": True, "unreadable": lost})
    return console_segments(segments, console_records(transaction_log(spark, records), transaction_log(spark, []), N))


def test_each_partition_is_known_until_its_own_newest_record(spark):
    found = segments_of(
        spark, [printed("pay", 0), printed("ship", 1, updated=TS + 5), printed("pay", 2, updated=TS + 3)]
    )
    expected = [(partition_for("pay", N), PRINTED, 2, TS + 3), (partition_for("ship", N), PRINTED, 1, TS + 5)]
    assert_rows(found, expected, "partition", "kind", "batches", "newest_broker_ms")


def test_what_was_unreadable_may_have_been_the_newest_record_of_any_partition(spark):
    found = segments_of(spark, [printed("pay", 0)], "BROKEN_LINE", "UNKNOWN_KEY_VERSION")
    (row,) = found.select(
        F.transform("unreadable", lambda s: F.struct(s["reason"], s["next_offset"])).alias("lost")
    ).collect()
    assert [(reason, offset > 1 << 60) for reason, offset in row["lost"]] == [("BROKEN_LINE", True)]
