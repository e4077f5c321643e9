"""What the live tool searches and prints. Group A restates Kafka's `TransactionsCommandTest`."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.core.kafka_commands import MS_PER_MINUTE, SearchScope, duration_minutes, is_candidate, is_printed
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.errors import UsageError

NOW = 1_700_000_000_000
MINUTE = 60_000


def test_A01_a_search_of_the_tool_needs_a_topic_or_a_broker() -> None:
    with pytest.raises(UsageError, match=r"topic= or broker_id="):
        SearchScope().check()
    assert SearchScope().covers("any", 0, frozenset())
    SearchScope(topic="any").check()
    SearchScope(broker_id=1).check()


def test_A02_a_partition_needs_a_topic() -> None:
    with pytest.raises(UsageError, match=r"partition= needs topic="):
        SearchScope(partition=5, broker_id=5)


REPLICAS = {("foo", 0): frozenset({0, 1}), ("foo", 1): frozenset({1, 5}), ("bar", 1): frozenset({5, 0})}

#: scope -> what it covers.
SCOPES = [
    pytest.param(SearchScope(broker_id=5), {("foo", 1), ("bar", 1)}, id="A03 any replica of the broker"),
    pytest.param(SearchScope(topic="foo", broker_id=5), {("foo", 1)}, id="A04 one topic on the broker"),
    pytest.param(SearchScope(topic="foo"), {("foo", 0), ("foo", 1)}, id="one topic, wherever it lives"),
    pytest.param(SearchScope(topic="foo", partition=1), {("foo", 1)}, id="one partition"),
    pytest.param(SearchScope("foo", 0, broker_id=5), {("foo", 0)}, id="a named partition needs no replica there"),
    pytest.param(SearchScope("foo", 7), set(), id="a partition that does not exist"),
    pytest.param(SearchScope(topic="foo", partition=0), {("foo", 0)}, id="partition 0 is a partition"),
    pytest.param(SearchScope(broker_id=0), {("foo", 0), ("bar", 1)}, id="broker 0 is a broker"),
]


@pytest.mark.parametrize(("scope", "expected"), SCOPES)
def test_a_scope_covers_the_partitions_that_the_tool_describes(
    scope: SearchScope, expected: set[tuple[str, int]]
) -> None:
    assert {(t, p) for (t, p), replicas in REPLICAS.items() if scope.covers(t, p, replicas)} == expected


#: candidate, id known, partition listed, coordinators complete -> printed; None: it depends on what is missing.
PRINTED = {
    (True, False, False, True): True,  # row 1 of the tool's table: no id has the producer
    (True, False, False, False): None,  # ... or its id lives in a partition that is not there
    (True, False, True, True): True,  # impossible, and decided as if nothing was listed
    (True, False, True, False): None,
    (True, True, False, True): True,  # rows 2 and 3: the id does not list the partition
    (True, True, False, False): True,
    (True, True, True, True): False,  # row 4
    (True, True, True, False): False,
} | {(False, known, listed, complete): False for known, listed, complete in product([False, True], repeat=3)}


@pytest.mark.parametrize(("candidate", "known", "listed", "complete"), PRINTED)
def test_every_cell_of_the_decision_is_the_tool_s(candidate: bool, known: bool, listed: bool, complete: bool) -> None:
    decided = is_printed(
        is_candidate=candidate, is_id_known=known, is_partition_listed=listed, are_coordinators_complete=complete
    )

    assert decided is PRINTED[candidate, known, listed, complete]


def test_the_tool_waits_15_minutes() -> None:
    assert (Thresholds(as_of_ms=0).max_transaction_timeout_ms, MS_PER_MINUTE) == (15 * 60_000, 60_000)


#: last timestamp -> candidate at 1 000 000 with a timeout of 900 000.
CANDIDATES = [
    (None, True),  # no timestamp always qualifies
    (-1, True),
    (99_999, True),
    (100_000, False),  # exactly at the timeout: not yet
    (100_001, False),
    (2_000_000, False),  # in the future
]


@pytest.mark.parametrize(("last_timestamp", "expected"), CANDIDATES)
def test_a_candidate_was_silent_for_longer_than_the_timeout(last_timestamp: int | None, expected: bool) -> None:
    assert is_candidate(last_timestamp, 1_000_000, 900_000) is expected


@given(st.integers(0, NOW), st.integers(0, NOW))
def test_a_duration_is_cut_off_towards_zero_as_java_does(last_timestamp: int, as_of: int) -> None:
    minutes = duration_minutes(last_timestamp, as_of)
    rest = (as_of - last_timestamp) - minutes * MINUTE

    assert abs(rest) < MINUTE
    assert rest == 0 or (rest > 0) is (as_of > last_timestamp)
