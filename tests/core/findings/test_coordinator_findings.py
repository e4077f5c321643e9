"""Odd fields of one coordinator record, and leader epochs. Sections E and 1.9."""

from __future__ import annotations

import pytest

from tests.support.log_notation import rec
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.coordinator import CoordinatorRecord, Transition, transition

P = 40
ONGOING = rec("O", P, 3, {"a-0"})

#: id and reason -> a record that is odd by itself.
ODD_RECORDS = {
    "E03 handed out at the last epoch": (rec("E", P, 32767), [Finding.EPOCH_BEYOND_EXHAUSTION]),
    "E13 Ongoing at an epoch that cannot be fenced": (rec("O", P, 32767, {"a-0"}), [Finding.EPOCH_BEYOND_EXHAUSTION]),
    "E25 Complete without a start": (rec("CC", P, 3, start_timestamp_ms=None), [Finding.START_TIMESTAMP_MISSING]),
    "Ongoing without a start": (rec("O", P, 3, start_timestamp_ms=None), [Finding.START_TIMESTAMP_MISSING]),
    "PrepareAbort without a start": (rec("PA", P, 3, start_timestamp_ms=None), [Finding.START_TIMESTAMP_MISSING]),
    "E25 partitions in Empty": (rec("E", P, 3, {"a-0"}), [Finding.PARTITIONS_IN_EMPTY]),
    "a state of the memory": (rec("DEAD", P, 3), [Finding.STATE_NEVER_WRITTEN]),
    "the other one": (rec("FENCE", P, 3), [Finding.STATE_NEVER_WRITTEN]),
    "the highest epoch a client may hold": (rec("O", P, 32766), []),
    "the epoch of a marker at exhaustion": (rec("PA", P, 32767), []),
    "a start that the text does not print": (rec("O", P, 3, start_timestamp_ms=None, version=None), []),
    "a start at the epoch of Unix": (rec("O", P, 3, start_timestamp_ms=0), []),
    "an empty list in Empty": (rec("E", P, 3, transaction_partitions=()), []),
}


@pytest.mark.parametrize("name", ODD_RECORDS)
def test_a_record_can_be_odd_by_itself(name: str) -> None:
    record, findings = ODD_RECORDS[name]

    assert transition(None, CoordinatorRecord(record), is_consecutive=False) == Transition(None, tuple(findings))


@pytest.mark.parametrize("is_consecutive", [False, True])
@pytest.mark.parametrize(("before", "after", "went_back"), [(3, 3, False), (3, 4, False), (4, 3, True)])
def test_leader_epochs_never_decrease_in_a_log(before: int, after: int, went_back: bool, is_consecutive: bool) -> None:
    seen = transition(
        CoordinatorRecord(ONGOING, before), CoordinatorRecord(ONGOING, after), is_consecutive=is_consecutive
    )

    assert seen.findings == ((Finding.COORDINATOR_EPOCH_WENT_BACK,) if went_back else ())
