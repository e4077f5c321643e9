"""The files that are read for each table, and their rows together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from txnlib.readers import table_readers
from txnlib.readers.capture import CaptureFile, FileKind, list_capture
from txnlib.readers.storage import files
from txnlib.readers.table_readers import READ_TABLES, may_hold, read_files, read_table, read_tables

#: Table -> kinds of its files. A topic in parentheses: only segments of that topic; text tells its topics itself.
FILES = """
record_batches        SEGMENT DUMP
transaction_log       SEGMENT(__transaction_state) DUMP
committed_offsets     SEGMENT(__consumer_offsets)
metadata_log          SEGMENT(__cluster_metadata) DUMP METADATA_SNAPSHOT
console_log           CONSOLE DUMP
segments              SEGMENT DUMP CONSOLE CHECKPOINT PRODUCER_SNAPSHOT TRANSACTION_INDEX UNKNOWN REFUSED
segments              METADATA_SNAPSHOT LIVE_PRODUCERS LIVE_TRANSACTIONS
live_producers        LIVE_PRODUCERS
live_transactions     LIVE_TRANSACTIONS
producer_snapshots    PRODUCER_SNAPSHOT DUMP LIVE_PRODUCERS
aborted_transactions  TRANSACTION_INDEX
checkpoints           CHECKPOINT
"""
TOPICS = ("__transaction_state", "__consumer_offsets", "__cluster_metadata", "orders", None)


def held() -> set[tuple[str, str, str | None]]:
    rows = (line.split() for line in FILES.strip().splitlines())
    kinds = ((table, *kind.rstrip(")").partition("(")) for table, *cells in rows for kind in cells)
    return {(table, kind, topic) for table, kind, _, only in kinds for topic in ([only] if only else TOPICS)}


def test_each_table_is_read_from_its_files_and_from_no_others():
    files = {kind.name: CaptureFile("a", kind, "raw", 1) for kind in FileKind}
    found = {
        (table, kind, topic)
        for table, kind, topic in product(READ_TABLES, files, TOPICS)
        if may_hold(table, replace(files[kind], topic=topic, partition=0))
    }
    assert found == held()


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(10_000, 4 << 20), (7, 4 << 20), (10_000, 1_000), (1, 1)])
def test_files_together_have_the_rows_of_each_file_in_order_and_no_batch_grows_without_limit(
    repository, monkeypatch, most_rows, most_bytes
):
    monkeypatch.setattr(table_readers, "JOINED_ROWS", most_rows)
    monkeypatch.setattr(table_readers, "JOINED_BYTES", most_bytes)
    files = list_capture([str(repository / "examples" / "quickstart" / "brokers")]).files
    together = list(read_files(READ_TABLES, files))
    for table in READ_TABLES:
        alone = [batch for file in files for batch in read_table(table, file)]
        joined = [batch for name, batch in together if name == table]
        assert [row for batch in joined for row in batch.to_pylist()] == [
            row for batch in alone for row in batch.to_pylist()
        ]
        largest = max((batch.num_rows for batch in alone), default=0)
        assert all(0 < batch.num_rows < most_rows + largest for batch in joined)


def test_many_small_files_are_few_batches(repository):
    files = list_capture([str(repository / "examples" / "quickstart" / "brokers")]).files
    found = [table for table, _ in read_files(READ_TABLES, files)]
    assert len(found) == len(set(found))
    assert {"record_batches", "segments", "checkpoints", "transaction_log"} <= set(found)


def test_one_pass_gives_every_table_its_rows_and_opens_each_file_once(repository, monkeypatch):
    opened: list[str] = []
    real = files.open_regular
    monkeypatch.setattr(files, "open_regular", lambda path: opened.append(str(path)) or real(path))
    for file in list_capture([str(repository / "examples" / "quickstart" / "brokers")]).files:
        alone = {
            table: [row for batch in read_table(table, file) for row in batch.to_pylist()] for table in READ_TABLES
        }
        opened.clear()
        together: dict[str, list[dict[str, object]]] = {table: [] for table in READ_TABLES}
        for table, batch in read_tables(READ_TABLES, file):
            together[table] += batch.to_pylist()
        assert together == alone
        assert opened == [file.path]
