"""One log of all copies of a coordinator partition."""

import pytest

from tests.support.frames import assert_rows, empty, transaction_log, transaction_log_row
from tests.support.log_notation import TS, rec
from txnlib.spark.coordinators.coordinator_states import CURRENT_COPIES, coordinator_log, coordinator_states
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES


def row(offset, state="O", *, source="raw:1", epoch=0, start=TS):
    entry = rec(state, 7, 0, {"orders-0"})
    return transaction_log_row(entry, 3, offset, TS, epoch) | {"source": source, "start_ms": start}


def read(spark, *rows):
    found = coordinator_log(transaction_log(spark, list(rows)), empty(spark, TABLES["coverage"]))
    return found.select("offset", "source", "state")


def test_an_offset_that_compaction_took_from_one_copy_is_read_from_another(spark):
    rows = [row(1), row(3), row(1, source="raw:2"), row(2, source="raw:2")]
    assert_rows(read(spark, *rows), [(1,), (2,), (3,)], "offset")


def test_where_copies_differ_the_higher_leader_epoch_is_the_history_that_survived(spark):
    rows = [row(1, "PA", source="raw:1", epoch=4), row(1, "PC", source="raw:2", epoch=5)]
    assert_rows(read(spark, *rows), [(1, "raw:2", "PrepareCommit")])


def test_raw_files_are_read_before_text_that_does_not_print_the_start(spark):
    rows = [row(1, source="text:a", start=None), row(1, source="raw:9")]
    assert_rows(read(spark, *rows), [(1, "raw:9", "Ongoing")])


def test_what_the_current_copy_no_longer_has_is_superseded(spark):
    """Compaction keeps the newest record of each id. Without a current copy, or above its end, nothing is known of
    that."""
    rows = [row(1), row(5), row(3, source="raw:2"), row(7, source="raw:2")]
    current = local_rows(spark, [(3, "raw:1", 6)], CURRENT_COPIES)
    for copies, superseded in ((current, [3]), (None, [])):
        found = coordinator_log(transaction_log(spark, rows), empty(spark, TABLES["coverage"]), copies)
        assert_rows(found, [(offset, offset in superseded) for offset in (1, 3, 5, 7)], "offset", "is_superseded")


#: Offset and start of the last Complete record, behind a decision at offset 1 that began at TS -> the number of its
#: transaction.
ENDS = {
    "of the same, sent again": (2, TS, 1),
    "of the same, behind a hole": (9, TS, 1),
    "of another, behind a hole": (9, TS + 60, 2),
    "of text without starts": (9, None, 1),
}


@pytest.mark.parametrize(("offset", "start", "number"), ENDS.values(), ids=ENDS)
def test_a_decision_behind_a_hole_is_another_one_if_it_began_at_another_time(spark, offset, start, number):
    """An older copy of the log may end with the first, and compaction have removed all of the second but its end."""
    log = transaction_log(spark, [row(0, "PC"), row(1, "CC"), row(offset, "CC", start=start)])
    states = coordinator_states(log, empty(spark, TABLES["coverage"]))
    assert_rows(states, [(0, 1), (1, 1), (offset, number)], "offset", "transaction_number")
