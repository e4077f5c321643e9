"""A log and its transaction index are compared by where their aborts end."""

from tests.support.frames import frame
from tests.support.rules import selected
from txnlib.core.findings.transaction_index_findings import (
    INDEXED_ABORTS,
    UNINDEXED_ABORTS,
    IndexedAbort,
    UnindexedAbort,
    of_indexed,
    of_unindexed,
)
from txnlib.spark.schemas import TABLES

WHOLE = {"end_offset": 100}
#: Offsets of the index entries, of the markers of the log, what of its copy was read -> what the index lacks, and the
#: log.
INDEXES = {
    "they agree": ([10, 20], [10, 20], WHOLE, [], []),
    "an entry is missing": ([20], [10, 20], WHOLE, [10], []),
    "nobody reads what was aborted": ([20], [10, 20], WHOLE | {"log_start_offset": 10}, [], []),
    "somebody reads what was aborted": ([20], [10, 20], WHOLE | {"log_start_offset": 9}, [10], []),
    "the index was copied before the log": ([10], [10, 20], WHOLE, [], []),
    "the log has no index": ([], [10], WHOLE, [], []),
    "a marker is missing": ([10, 15, 20], [10, 20], WHOLE, [], [15]),
    "it was not read from there on": ([10, 20], [10], {"end_offset": 20}, [], []),
    "it was read from a snapshot on": ([10, 20], [20], {"end_offset": 100, "read_from_offset": 11}, [], []),
    "compaction left a hole": ([10, 20], [20], {"end_offset": 100, "gap_offset": 12}, [], []),
    "the copy is damaged": ([20, 30], [10, 20], {"end_offset": 100, "damaged_offset": 50}, [], []),
}


def test_aborts_of_a_log_and_of_its_index_are_the_same(spark):
    spans, entries, known = [], [], []
    for number, (indexed, markers, read, *_) in enumerate(INDEXES.values()):
        copy = {"topic": "orders", "partition": number, "source": "raw:1"}
        known.append(copy | {"is_judged": True, "tail": "CLEAN"} | read)
        entries += [copy | {"segment_base_offset": 0, "producer_id": 7, "last_offset": at} for at in indexed]
        ended = copy | {"producer_id": 7, "marker_type": "ABORT"}
        spans += [ended | {"first_offset": at - 1, "last_offset": at - 1, "marker_offset": at} for at in markers]
        spans.append(ended | {"first_offset": None, "marker_offset": 9})  # an abort of nothing has no entry
    tables = {
        "aborted_transactions": frame(spark, TABLES["aborted_transactions"], *entries),
        "producer_spans": frame(spark, TABLES["producer_spans"], *spans),
        "coverage": frame(spark, TABLES["coverage"], *known),
    }
    rows = (selected(UNINDEXED_ABORTS, **tables), selected(INDEXED_ABORTS, **tables))
    found = [sorted((row.partition, row.marker_offset) for row in side) for side in rows]
    expected = [[(number, at) for number, case in enumerate(INDEXES.values()) for at in case[side]] for side in (3, 4)]
    assert found == expected


def test_aborts_on_which_log_and_index_disagree() -> None:
    (lost,) = of_unindexed([UnindexedAbort("orders", 0, 7, 20)])
    assert (lost.name, lost.offset, lost.evidence) == (
        "TRANSACTION_INDEX_DISAGREES",
        20,
        "the index has no entry with last offset 20",
    )
    (extra,) = of_indexed([IndexedAbort("orders", 0, 7, 12, 20, 21)])
    assert (extra.name, extra.offset, extra.evidence) == (lost.name, 20, "first offset 12, last offset 20, LSO 21")
