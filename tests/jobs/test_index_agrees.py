"""Transaction indexes of real brokers against the audit's own, and a wrong one."""

import shutil

import pytest

from tests.support import live_output
from tests.support.memory_audits import audited
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.transaction_index import ENTRY, AbortedTxn, read_transaction_index

OURS = {Finding.ABORT_NOT_INDEXED.name, Finding.INDEXED_ABORT_NOT_IN_LOG.name}


@pytest.fixture
def broker(captures, tmp_path):
    return shutil.copytree(captures / "nights-3.9" / "night-3" / "brokers", tmp_path / "brokers")


def found(spark, folder):
    return [
        (row["name"], row["producer_id"], row["offset"]) for row in audited(spark, folder).rows("findings") if row["name"] in OURS
    ]


def indexes(folder):
    """The entries of every index of `nightly.in`, by file."""
    paths = sorted(folder.rglob("nightly.in-*/*.txnindex"))
    return {path: entries for path in paths if (entries := read_transaction_index(path.read_bytes()))}


@pytest.mark.slow
def test_real_indexes_agree(spark, captures):
    night = captures / "nights-3.9" / "night-3"
    tables = audited(spark, night / "brokers", "--as-of", str(live_output.as_of(night)))
    assert sum(row["producer_id"] is not None for row in tables.rows("aborted_transactions")) > 10
    assert [row for row in tables.rows("findings") if row["name"] in OURS] == []


def test_an_abort_that_an_index_lacks_is_found(spark, broker):
    for path, entries in indexes(broker).items():
        if len(entries) > 1:
            path.write_bytes(b"".join(ENTRY.pack(0, *entry) for entry in entries[1:]))
            lost = entries[0]
    assert ("ABORT_NOT_INDEXED", lost.producer_id, lost.last_offset) in found(spark, broker)


@pytest.mark.slow
def test_an_abort_that_only_an_index_knows_is_found(spark, broker):
    for path, entries in indexes(broker).items():
        first = entries[0]
        made_up = AbortedTxn(77, first.first_offset, first.first_offset, first.first_offset)
        path.write_bytes(b"".join(ENTRY.pack(0, *entry) for entry in [made_up, *entries]))
    assert ("INDEXED_ABORT_NOT_IN_LOG", 77, made_up.last_offset) in found(spark, broker)


@pytest.mark.slow
def test_a_corrupt_index_is_quarantined_and_compared_with_nothing(spark, broker):
    for path in indexes(broker):
        path.write_bytes(b"\x00\x09" + path.read_bytes()[2:])
    tables = audited(spark, broker)
    assert {row["reason"] for row in tables.rows("quarantine")} == {
        "CORRUPT_TRANSACTION_INDEX: byte 0: version 9 of an aborted transaction is not known"
    }
    assert [row for row in tables.rows("findings") if row["name"] in OURS] == []
