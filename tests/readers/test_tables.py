"""The files that are read for each table."""

from __future__ import annotations

from itertools import product

from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.table_readers import READERS, may_hold

#: Table -> kinds of its files. A topic in parentheses: only segments of that topic; text tells its topics itself.
FILES = """
record_batches        SEGMENT DUMP
batch_runs            SEGMENT DUMP
transaction_log       SEGMENT(__transaction_state) DUMP
committed_offsets     SEGMENT(__consumer_offsets)
metadata_log          SEGMENT(__cluster_metadata) DUMP METADATA_SNAPSHOT
console_log           CONSOLE
segments              SEGMENT DUMP CONSOLE CHECKPOINT PRODUCER_SNAPSHOT TRANSACTION_INDEX UNKNOWN REFUSED SKIPPED_SEGMENT
segments              METADATA_SNAPSHOT LIVE_PRODUCERS LIVE_TRANSACTIONS
live_producers        LIVE_PRODUCERS
live_transactions     LIVE_TRANSACTIONS
segment_parts         SEGMENT
producer_snapshots    PRODUCER_SNAPSHOT DUMP
aborted_transactions  TRANSACTION_INDEX
checkpoints           CHECKPOINT
"""
TOPICS = ("__transaction_state", "__consumer_offsets", "__cluster_metadata", "orders", None)


def held() -> set[tuple[str, str, str | None]]:
    rows = (line.split() for line in FILES.strip().splitlines())
    kinds = ((table, *kind.rstrip(")").partition("(")) for table, *cells in rows for kind in cells)
    return {(table, kind, topic) for table, kind, _, only in kinds for topic in ([only] if only else TOPICS)}


def test_each_table_is_read_from_its_files_and_from_no_others():
    found = {
        (table, kind.name, topic)
        for table, kind, topic in product({table for table, _ in READERS}, FileKind, TOPICS)
        if may_hold(table, CaptureFile("a", kind, "raw", 1, topic, 0))
    }
    assert found == held()
