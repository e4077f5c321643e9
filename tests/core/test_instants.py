"""Laws of timestamps that are out of range.

Any int64 may stand in a log: nothing raises, and no verdict rests on it.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.core.verdicts.test_find_hanging import NOW
from tests.core.verdicts.test_verdict import AT_ONE, MARKED, NOBODY, NOON, ONGOING, PARTITION
from tests.support.cases import NAMES, case, decided, replace
from txnlib.core.copies import CoverageRow
from txnlib.core.display import duration, instant
from txnlib.core.instants import FIRST_MS, LAST_MS, NO_INSTANT_MS, clock_ms, clock_ms_or_latest, long_difference
from txnlib.core.kafka.producer_state import has_late_transaction
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka_commands import duration_minutes, is_candidate
from txnlib.core.verdicts.age import last_write_ms, lateness, proven_since_ms
from txnlib.core.verdicts.cause import causes
from txnlib.core.verdicts.dossier import Claim, OpenSpan
from txnlib.core.verdicts.evidence_records import evidence_records
from txnlib.core.verdicts.no_commit import answer_of
from txnlib.core.verdicts.reason import Verdict
from txnlib.core.verdicts.remedy import remedy
from txnlib.core.verdicts.verdict import judge

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
ODD = (LEAST, LEAST + 1, -2, -1, 0, LAST_MS + 1, NOON * 1_000, NOON * 1_000_000, GREATEST)
DECIDED = decided("COMMIT", 0, decided_ms=NOON, completed_ms=NOON)
PREPARED = replace(ONGOING, state=TransactionState.PREPARE_ABORT, record_ms=NOON, last_update_ms=NOON)
SIDES = {
    "nobody": NOBODY,
    "ongoing": ONGOING,
    "prepared": PREPARED,
    "decided": replace(NOBODY, decision=DECIDED, commit_due=DECIDED),
}


#: The fields that hold a time from a log, where they are gathered or derived; limits are no times.
ENDS = {"known_until_ms", "ended_ms", "compacted_ms", "earliest_captured_at_ms"}
AT_COORDINATOR = ENDS | {each.name for each in fields(Claim)}
ON_PARTITION = {each.name for of in (OpenSpan, CoverageRow) for each in fields(of)} | NAMES - AT_COORDINATOR
LIMITS = {"transaction_timeout_ms", "clocks_differ_ms", "coordinators_known_until_ms"}


def times(names: set[str]) -> list[str]:
    return sorted(name for name in names - LIMITS if name.endswith("_ms"))


CASES = [
    *[("partition", name) for name in times(ON_PARTITION | {"marker_ms", "newest_commit_ms"})],
    *[("coordinator", name) for name in times(AT_COORDINATOR)],
]


@pytest.mark.parametrize("ms", [FIRST_MS, NOON, LAST_MS])
def test_a_time_that_a_clock_shows_is_itself(ms):
    assert (clock_ms(ms), clock_ms_or_latest(ms)) == (ms, ms)


@pytest.mark.parametrize("ms", ODD)
def test_one_that_no_clock_shows_is_none_and_may_be_later_than_any(ms):
    assert (clock_ms(ms), clock_ms_or_latest(ms)) == (None, NO_INSTANT_MS)
    assert (clock_ms(None), clock_ms_or_latest(None)) == (None, None)


@pytest.mark.parametrize("ms", ODD)
def test_every_time_has_words(ms):
    assert instant(ms)
    assert duration(ms)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("ms", ODD)
def test_whatever_is_stamped_so_is_judged_and_never_aborted_for_it(side, ms):
    plain = case(PARTITION, SIDES[side])
    usual = judge(plain)
    for of, name in CASES:
        if of == "partition":
            odd = case(replace(MARKED if name == "marker_ms" else PARTITION, **{name: ms}), SIDES[side])
        else:
            odd = case(PARTITION, replace(SIDES[side], **{name: ms}))
        judgement = judge(odd)
        cure = remedy(odd, judgement, answer_of(odd))
        assert causes(judgement.reason, odd, answer_of(odd)) is not None
        assert evidence_records(odd)
        assert not cure.safe_to_abort or remedy(plain, usual, answer_of(plain)).safe_to_abort, name
        assert judgement.broker_clock_age_ms is None or 0 <= judgement.broker_clock_age_ms <= AT_ONE.as_of_ms, name
        assert lateness(odd, AT_ONE.as_of_ms) in (None, *{lateness(plain, AT_ONE.as_of_ms)}), name


@pytest.mark.parametrize("ms", ODD)
def test_a_last_write_stamped_so_has_no_age_and_is_said(ms):
    odd = case(replace(PARTITION, last_timestamp_ms=ms, first_timestamp_ms=ms, stamped_after_ms=None), NOBODY)
    assert (last_write_ms(odd), proven_since_ms(odd)) == (None, None)
    judgement = judge(odd)
    assert judgement.verdict is not Verdict.HANGING, "nothing proves its age"
    assert f"its last write is stamped with a time that no clock shows ({ms} ms)" in judgement.explanation


@pytest.mark.parametrize("ms", ODD)
def test_an_end_at_such_a_time_may_have_come_after_any_copy(ms):
    for name in ("ended_ms", "compacted_ms"):
        odd = case(PARTITION, replace(NOBODY, **{name: ms}))
        assert judge(odd).verdict is Verdict.UNKNOWN, name


#: (now, last write) -> the difference of Java's long.
WRAPPED = [
    (NOW, GREATEST, NOW - GREATEST),
    (NOW, LEAST, NOW + LEAST),
    (NOW, LEAST + 1, NOW + LEAST - 1),
    (NOW, 0, NOW),
    (GREATEST, -1, LEAST),
]


@pytest.mark.parametrize(("now", "last_write", "silence"), WRAPPED)
def test_the_live_tool_subtracts_as_java_does(now, last_write, silence):
    assert long_difference(now, last_write) == silence
    assert is_candidate(last_write, now, 900_000) is (silence > 900_000)
    assert abs(duration_minutes(last_write, now)) == abs(silence) // 60_000


@pytest.mark.parametrize("ms", ODD)
def test_brokers_call_nothing_late_that_is_stamped_so(ms):
    assert has_late_transaction(ms, NOW, 900_000) is False


def test_all_fields_with_times_are_looked_at():
    assert {name for _, name in CASES} >= {"last_timestamp_ms", "marker_ms", "record_ms", "ended_ms"}


@pytest.mark.parametrize("ms", ODD)
def test_a_decision_at_such_a_time_is_not_overdue_for_it(ms):
    young = case(PARTITION, replace(PREPARED, record_ms=ms))
    assert judge(young).verdict is Verdict.OPEN
