"""Two-phase commits that are not decided. The identity of a kept one is that of the examples of KIP-939."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.rows import TransactionKey
from txnlib.core.tables.in_doubt_transactions import (
    HeldData,
    LastRecordCopy,
    RecordKey,
    SeenInDoubt,
    TransactionInDoubt,
    UndecidedTransaction,
    in_doubt_transactions,
    kept_identity,
)

MAX = 32767
#: Ongoing identity, next identity in the record -> what the next InitProducerId with keepPreparedTxn returns; None: a
#: new id.
KEPT = [
    ((42, 100), (None, None), (42, 101)),
    ((42, 100), (None, -1), (42, 101)),
    ((42, 100), (42, 101), (42, 102)),
    # KIP-939, example B: rows 4, 6 and 7
    ((42, MAX - 1), (None, None), (None, 0)),
    ((42, MAX - 1), (73, 0), (73, 1)),
    ((42, MAX - 1), (73, 1), (73, 2)),
    # a plain overflow has a next id without a next epoch
    ((42, 5), (85, None), (42, 6)),
    # the client's epochs are used up, too
    ((42, MAX - 1), (73, MAX - 2), (73, MAX - 1)),
    ((42, MAX - 1), (73, MAX - 1), (None, 0)),
    ((42, MAX - 1), (73, MAX), (None, 0)),
]


@pytest.mark.parametrize(("ongoing", "following", "kept"), KEPT)
def test_a_client_that_comes_back_gets_the_next_identity(ongoing, following, kept):
    assert kept_identity(*ongoing, *following) == kept


AS_OF, BEGAN, LIMIT = 9_000_000, 1_000_000, 900_000
PREPARED = UndecidedTransaction(
    "flink-1-7", 3, 1, 6, 0, "Ongoing", BEGAN, (TopicPartition("orders", 0),), last_record_offset=906
)
RECORD = LastRecordCopy("flink-1-7", 3, next_producer_id=73, next_producer_epoch=4, last_update_ms=BEGAN + 20)
SEEN = SeenInDoubt("night-1", BEGAN + 1_000, "flink-1-7", 6, 0, BEGAN)


def in_doubt(
    *transactions: UndecidedTransaction, records: Sequence[LastRecordCopy] = (), seen: Sequence[SeenInDoubt] = ()
) -> list[TransactionInDoubt]:
    def last(keys: Sequence[RecordKey]) -> Sequence[LastRecordCopy]:
        assert list(keys) == [RecordKey(each.transactional_id, 3, each.last_record_offset) for each in transactions]
        return records

    def held(keys: Sequence[TransactionKey]) -> Sequence[HeldData]:
        return [HeldData("flink-1-7", 3, 1, 10, 1_000)]

    found = in_doubt_transactions(transactions, last, held, lambda keys: seen, as_of_ms=AS_OF, in_doubt_after_ms=LIMIT)
    return list(found)


def test_a_prepared_transaction_is_in_doubt() -> None:
    (row,) = in_doubt(PREPARED, records=[RECORD], seen=[SEEN])
    assert (row.application, row.state, row.partitions) == ("flink", "Ongoing", PREPARED.partitions)
    assert (row.records, row.bytes, row.last_update_ms) == (10, 1_000, BEGAN + 20)
    assert (row.open_since_ms, row.open_ms, row.is_overdue) == (BEGAN, AS_OF - BEGAN, True)
    assert (row.is_kept, row.kept_producer_id, row.kept_producer_epoch) == (True, 73, 5)
    assert (row.runs_seen, row.first_seen_ms) == (2, BEGAN + 1_000)


def test_text_that_omits_fields_and_copies_that_have_them_are_one_record() -> None:
    (row,) = in_doubt(PREPARED, records=[replace(RECORD, next_producer_id=None, next_producer_epoch=None), RECORD])
    assert (row.is_kept, row.kept_producer_id, row.kept_producer_epoch) == (True, 73, 5)
    (row,) = in_doubt(PREPARED)
    assert (row.is_kept, row.kept_producer_id, row.kept_producer_epoch, row.last_update_ms) == (None, 6, 1, None)
    (row,) = in_doubt(PREPARED, records=[replace(RECORD, next_producer_id=None, next_producer_epoch=-1)])
    assert row.is_kept is False


def test_what_another_transaction_holds_is_not_counted() -> None:
    (row,) = in_doubt(replace(PREPARED, transaction_number=2))
    assert (row.records, row.bytes) == (None, None)


@pytest.mark.parametrize(
    ("start_ms", "open_ms", "is_overdue"),
    [
        (AS_OF - LIMIT, LIMIT, False),
        (AS_OF - LIMIT - 1, LIMIT + 1, True),
        (AS_OF + 5, 0, False),
        pytest.param(None, None, True, id="nobody knows that it is young"),
    ],
)
def test_a_transaction_is_overdue_after_the_limit(start_ms: int | None, open_ms: int | None, is_overdue: bool) -> None:
    (row,) = in_doubt(replace(PREPARED, start_ms=start_ms))
    assert (row.open_ms, row.is_overdue) == (open_ms, is_overdue)


@pytest.mark.parametrize(
    ("seen", "runs", "first_ms"),
    [
        ((), 1, AS_OF),
        ((SEEN, SEEN, replace(SEEN, run_id="night-2", as_of_ms=5)), 3, 5),
        ((replace(SEEN, producer_epoch=1),), 1, AS_OF),
        ((replace(SEEN, producer_id=7),), 1, AS_OF),
        ((replace(SEEN, open_since_ms=BEGAN + 1),), 1, AS_OF),
    ],
)
def test_runs_that_saw_the_same_transaction_count(seen: Sequence[SeenInDoubt], runs: int, first_ms: int) -> None:
    (row,) = in_doubt(PREPARED, seen=seen)
    assert (row.runs_seen, row.first_seen_ms) == (runs, first_ms)


def test_of_a_transaction_whose_start_is_not_known_nobody_knows_whether_it_was_seen() -> None:
    (row,) = in_doubt(replace(PREPARED, start_ms=None), seen=[replace(SEEN, open_since_ms=None)])
    assert row.runs_seen == 1
