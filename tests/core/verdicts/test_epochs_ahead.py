"""Partitions with an epoch ahead of their coordinator's (docs/rules/transactions.md#epochs-of-markers)."""

from __future__ import annotations

import pytest

from tests.core.verdicts.test_verdict import AT_ONE, NOON, ONGOING, PARTITION, PREPARED
from tests.support.cases import case, replace
from txnlib.core.verdicts.reason import Reason, Verdict
from txnlib.core.verdicts.verdict import judge

#: P - C, brokers, transaction version of the cluster -> the reason for an Ongoing transaction that lists the partition.
ONGOING_BY_EPOCH = [
    (-1, "4.2.0", 2, Reason.EXPECTED),
    (0, "4.2.0", 2, Reason.EXPECTED),
    (0, None, None, Reason.EXPECTED),
    (1, "3.9.1", None, Reason.EXPECTED),
    (1, "4.1.1", 2, Reason.EXPECTED),
    (1, "4.2.0", 1, Reason.EXPECTED),
    (1, "4.2.0", 2, Reason.EPOCH_AHEAD_OF_COORDINATOR),
    (1, "4.2.0", None, Reason.BROKER_VERSION_UNKNOWN),
    (1, None, None, Reason.BROKER_VERSION_UNKNOWN),
    (1, None, 1, Reason.EXPECTED),
    (2, "3.9.1", None, Reason.EPOCH_AHEAD_OF_COORDINATOR),
    (2, "4.1.1", 2, Reason.EPOCH_AHEAD_OF_COORDINATOR),
    (2, None, None, Reason.EPOCH_AHEAD_OF_COORDINATOR),
]
YOUNG = replace(ONGOING, start_ms=AT_ONE.as_of_ms - 1_000)
FRESH = replace(PARTITION, last_timestamp_ms=AT_ONE.as_of_ms - 1_000, first_timestamp_ms=NOON)


@pytest.mark.parametrize(("ahead", "version", "transactions", "reason"), ONGOING_BY_EPOCH)
def test_an_ongoing_transaction_is_ended_by_the_epoch_after_its_own(ahead, version, transactions, reason):
    partition = replace(FRESH, producer_epoch=YOUNG.producer_epoch + ahead)
    coordinator = replace(YOUNG, transaction_version=transactions)
    found = judge(case(partition, coordinator, AT_ONE, version))
    assert found.reason is reason
    if reason is Reason.EXPECTED:
        assert found.verdict is Verdict.OPEN
        assert ("an epoch one higher than its coordinator's" in found.explanation) == (ahead == 1)
    if reason is Reason.BROKER_VERSION_UNKNOWN:
        assert found.verdict is Verdict.UNKNOWN


def test_a_client_of_transactions_v2_shows_the_clusters_version():
    partition = replace(FRESH, producer_epoch=YOUNG.producer_epoch + 1)
    assert judge(case(partition, replace(YOUNG, client_transaction_version=2), AT_ONE, "4.2.0")).reason is (
        Reason.EPOCH_AHEAD_OF_COORDINATOR
    )
    assert (
        judge(case(partition, replace(YOUNG, client_transaction_version=2), AT_ONE, "4.1.0")).reason is Reason.EXPECTED
    )


@pytest.mark.parametrize("version", ["4.1.1", "3.9.1"])
def test_a_two_phase_commit_one_epoch_ahead_is_not_hanging_before_4_2(version):
    prepared = replace(YOUNG, transaction_timeout_ms=2**31 - 1)
    partition = replace(PARTITION, producer_epoch=prepared.producer_epoch + 1)
    assert judge(case(partition, prepared, AT_ONE, version)).reason is Reason.TWO_PHASE_COMMIT


#: P - the decision's epoch, brokers, transaction version of the decision -> the reason.
PREPARED_BY_EPOCH = [
    (-1, "4.2.0", 2, Reason.MARKER_PENDING),
    (0, "4.1.1", 2, Reason.MARKER_PENDING),
    (0, "4.2.0", 1, Reason.MARKER_PENDING),
    (0, "4.2.0", 2, Reason.MARKER_REFUSED),
    (0, None, 2, Reason.MARKER_PENDING),  # not known: its age decides
    (1, "3.9.1", None, Reason.MARKER_REFUSED),
    (1, None, None, Reason.MARKER_REFUSED),
]


@pytest.mark.parametrize(("ahead", "version", "transactions", "reason"), PREPARED_BY_EPOCH)
def test_a_decision_carries_its_own_epoch(ahead, version, transactions, reason):
    partition = replace(FRESH, producer_epoch=PREPARED.producer_epoch + ahead)
    coordinator = replace(PREPARED, client_transaction_version=transactions)
    assert judge(case(partition, coordinator, AT_ONE, version)).reason is reason
