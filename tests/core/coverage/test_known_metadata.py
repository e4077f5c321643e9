"""What a captured metadata log proves of its own end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.copies import captured, unreadable
from txnlib.core.copies import CONFIRMED_WITHIN_MS, STALE_AFTER_MS, LeaderBasis
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import CapturedFile
from txnlib.core.coverage.known_metadata import KnownMetadata, MetadataReach, known_metadata
from txnlib.core.instants import LAST_MS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC

AT = 1_700_000_000_000
REACH = MetadataReach(known_ms=AT, last_offset=99, has_no_ops=True, is_complete=True, end=99)
WHOLE = captured(CLUSTER_METADATA_TOPIC, end=100, newest_broker_ms=AT)
DATA = captured("orders", end=7, newest_broker_ms=AT - 5)
TORN, LOST = unreadable(reason="INCOMPLETE_BATCH"), unreadable()
SOON = CONFIRMED_WITHIN_MS[True]


def known(
    *segments: CapturedFile, log: MetadataReach = REACH, copied: dict[str, int] | None = None
) -> KnownMetadata | None:
    instants = {"raw:1": AT + 1} if copied is None else copied
    named = {f"{source.removeprefix('raw:')}/{CLUSTER_METADATA_TOPIC}-0": ms for source, ms in instants.items()}
    return known_metadata(log, segments, CaptureInstants(None, named))


def fact(name: str, *segments: CapturedFile, **given) -> object:
    return getattr(known(*segments, **given), name)


def test_a_log_that_still_grew_when_it_was_copied_is_known_to_its_end():
    assert known(WHOLE, DATA) == KnownMetadata(LeaderBasis.METADATA_LOG, True, AT, AT + SOON, True, True)


def test_without_records_nothing_is_known_but_that_some_are_lost():
    assert known(DATA, log=MetadataReach()) is None
    assert known(replace(WHOLE, end_offset=None), log=MetadataReach()) is None
    lost = replace(WHOLE, end_offset=None, unreadable=(LOST,))
    assert known(lost, log=MetadataReach()) == KnownMetadata(LeaderBasis.METADATA_LOG_DAMAGED, has_metadata_end=False)


@pytest.mark.parametrize(
    "copies",
    [
        pytest.param((replace(WHOLE, unreadable=(LOST,)),), id="bytes at the end"),
        pytest.param((WHOLE, replace(WHOLE, source="raw:2", end_offset=101)), id="a batch that was not decoded"),
    ],
)
def test_what_is_lost_at_the_end_is_damage(copies):
    assert fact("metadata_basis", *copies) is LeaderBasis.METADATA_LOG_DAMAGED
    assert fact("has_metadata_end", *copies) is False


def test_records_beyond_the_end_that_counts_are_damage():
    assert fact("metadata_basis", WHOLE, log=replace(REACH, end=100)) is LeaderBasis.METADATA_LOG_DAMAGED


def test_damage_below_the_end_and_in_front_of_readable_batches_loses_no_newer_record():
    dead = replace(WHOLE, source="raw:2", end_offset=50, unreadable=(LOST,))
    in_front = replace(WHOLE, unreadable=(unreadable(80),))
    assert fact("metadata_basis", WHOLE, dead) is LeaderBasis.METADATA_LOG
    assert fact("is_metadata_whole", in_front) is True


def test_a_log_without_its_beginning_names_leaders_and_is_not_complete():
    assert known(WHOLE, log=replace(REACH, is_complete=False)) == replace(known(WHOLE), is_metadata_complete=False)


def test_a_log_that_ends_inside_a_batch_has_its_end_but_is_not_whole():
    torn = replace(WHOLE, unreadable=(TORN,))
    assert (fact("has_metadata_end", torn), fact("is_metadata_whole", torn)) == (True, False)
    assert fact("metadata_basis", torn) is LeaderBasis.METADATA_LOG


def test_the_earliest_copy_with_all_of_the_log_counts():
    late = AT + SOON + 1
    dead = replace(WHOLE, source="raw:2", end_offset=50)
    other = replace(WHOLE, source="raw:3")
    instants = {"raw:1": late, "raw:2": AT, "raw:3": AT + SOON}
    assert fact("metadata_basis", WHOLE, dead, copied=instants) is LeaderBasis.METADATA_LOG_UNCONFIRMED
    assert fact("metadata_basis", WHOLE, dead, other, copied=instants) is LeaderBasis.METADATA_LOG
    assert fact("metadata_basis", WHOLE, copied={}) is LeaderBasis.METADATA_LOG_UNCONFIRMED


def test_a_log_is_stale_only_if_all_brokers_were_silent():
    instants = {"raw:1": AT + STALE_AFTER_MS + 1}
    younger = replace(DATA, newest_broker_ms=AT + SOON + 1)
    assert fact("metadata_basis", WHOLE, DATA, copied=instants) is LeaderBasis.METADATA_LOG_STALE
    assert fact("metadata_basis", WHOLE, younger, copied=instants) is LeaderBasis.METADATA_LOG_UNCONFIRMED
    wrong = replace(DATA, newest_broker_ms=LAST_MS + 1)
    assert fact("metadata_basis", WHOLE, wrong, copied=instants) is LeaderBasis.METADATA_LOG_STALE, (
        "no clock shows that"
    )


def test_a_folder_that_was_copied_later_may_show_what_the_log_does_not():
    assert fact("is_metadata_whole", WHOLE, copied={"raw:1": AT + SOON}) is True
    assert fact("is_metadata_whole", WHOLE, copied={"raw:1": AT, "raw:2": AT + SOON + 1}) is False
