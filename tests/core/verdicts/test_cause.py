"""Each known cause, with and without its signature."""

from __future__ import annotations

import pytest

from tests.core.verdicts.test_verdict import COMPLETE, MARKED, NOBODY, ONGOING, PARTITION, PREPARED
from tests.support.cases import Given, case, decided, replace
from txnlib.core.cluster_metadata import Election, FencedBroker, LoweredFeature
from txnlib.core.verdicts.cause import CAUSES, causes
from txnlib.core.verdicts.cause_rule import Likelihood
from txnlib.core.verdicts.no_commit import answer_of
from txnlib.core.verdicts.reason import Reason

#: Nobody's, where a coordinator's log has a hole: compaction may have removed a tombstone.
CLEANED = replace(NOBODY, compacted_offset=12)
AFTER = replace(MARKED, producer_epoch=MARKED.marker_epoch)
MINUTE = 60_000


def causes_of(reason, given):
    return causes(reason, given, answer_of(given))


def named(reason, partition, coordinator, version=None):
    return [(c.likelihood, c.cause) for c in causes_of(reason, case(partition, coordinator, version=version))]


def first(reason, partition, coordinator, version=None):
    return named(reason, partition, coordinator, version)[0]


def has(reason, partition, coordinator, word):
    return any(word in cause for _, cause in named(reason, partition, coordinator))


@pytest.mark.parametrize("reason", CAUSES)
def test_causes_are_ranked_and_each_shows_something(reason):
    for partition in (PARTITION, AFTER, replace(AFTER, topic="__consumer_offsets")):
        for coordinator in (NOBODY, ONGOING, COMPLETE, PREPARED):
            found = causes_of(reason, case(partition, coordinator))
            ranks = [Likelihood[cause.likelihood] for cause in found]
            assert ranks == sorted(ranks)
            assert all(cause.evidence and "{" not in cause.evidence + cause.cause for cause in found)


@pytest.mark.parametrize(
    ("version", "likelihood"), [("3.6.1", "LIKELY"), ("3.7.0", "UNLIKELY"), (None, "LIKELY"), ("trunk", "LIKELY")]
)
def test_newer_brokers_make_a_mended_fault_unlikely(version, likelihood):
    offsets = replace(AFTER, topic="__consumer_offsets")
    found = {cause: likely for likely, cause in named(Reason.WRITTEN_AFTER_MARKER, offsets, COMPLETE, version)}
    assert next(likely for cause, likely in found.items() if "KAFKA-15784" in cause) == likelihood


LOST = decided("COMMIT", 5, decided_ms=1, completed_ms=2)


@pytest.mark.parametrize(
    "reason", [Reason.PARTITION_NOT_IN_TRANSACTION, Reason.TRANSACTIONAL_ID_EXPIRED, Reason.PRODUCER_ID_ROTATED]
)
@pytest.mark.parametrize("partition", [PARTITION, MARKED])
def test_a_decided_transaction_whose_marker_is_gone_is_told_from_a_write_that_was_never_added(reason, partition):
    assert "marker is gone" in first(reason, partition, replace(COMPLETE, decision=LOST))[1]
    assert not has(reason, partition, replace(COMPLETE, decision=LOST), "without adding the partition")
    assert not has(reason, partition, ONGOING, "marker is gone")


def test_a_cause_does_not_contradict_a_finding():
    found = replace(PARTITION, alarms=("MARKER_MISSING",))
    assert not has(Reason.PARTITION_NOT_IN_TRANSACTION, found, COMPLETE, "without adding the partition")


#: Reason -> its candidates, most likely first: words of the cause, likelihood, first version of brokers without the
#: fault.
GRID = """
WRITTEN_AFTER_MARKER
  unclean_election        PROVEN    -
  unclean_election        LIKELY    -
  without_being_in_sync   LIKELY    -
  deleted_and_created     PROVEN    -
  had_no_leader           LIKELY    -
  was_lowered             LIKELY    -
  KAFKA-15784             LIKELY    3.7
  KAFKA-14402             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             POSSIBLE  -
  KAFKA-19446             POSSIBLE  4.2
  KAFKA-18957             POSSIBLE  -
PARTITION_NOT_IN_TRANSACTION
  unclean_election        PROVEN    -
  unclean_election        LIKELY    -
  without_being_in_sync   LIKELY    -
  deleted_and_created     PROVEN    -
  had_no_leader           LIKELY    -
  was_lowered             LIKELY    -
  KAFKA-15784             LIKELY    3.7
  marker_is_gone          LIKELY    -
  disk_lost               LIKELY    -
  KAFKA-12671             LIKELY    -
  KAFKA-12671             POSSIBLE  -
  never_assigned          POSSIBLE  4.0
  KAFKA-14402             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             POSSIBLE  -
  KAFKA-12671             POSSIBLE  -
PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR
  no_coordinator_made     PROVEN    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             POSSIBLE  -
  disk_lost               POSSIBLE  -
  removed_its_tombstone   POSSIBLE  -
  made_up                 POSSIBLE  -
TRANSACTIONAL_ID_EXPIRED
  unclean_election        PROVEN    -
  unclean_election        LIKELY    -
  without_being_in_sync   LIKELY    -
  deleted_and_created     PROVEN    -
  had_no_leader           LIKELY    -
  marker_is_gone          LIKELY    -
  expired_meanwhile       LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             POSSIBLE  -
  KAFKA-14402             POSSIBLE  -
PRODUCER_ID_ROTATED
  unclean_election        PROVEN    -
  unclean_election        LIKELY    -
  without_being_in_sync   LIKELY    -
  deleted_and_created     PROVEN    -
  had_no_leader           LIKELY    -
  marker_is_gone          LIKELY    -
  has_given_up            LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             LIKELY    -
  KAFKA-13727             POSSIBLE  -
EPOCH_AHEAD_OF_COORDINATOR
  was_lowered             LIKELY    -
  unclean_election        PROVEN    -
  never_assigned          LIKELY    4.0
  restored_older_copy     POSSIBLE  -
MARKER_REFUSED
  newer_producer_epoch    LIKELY    -
  newer_coordinator_epoch LIKELY    -
MARKER_PENDING
  has_no_leader           PROVEN    -
  nobody_acts             PROVEN    -
  refuses_the_marker,     PROVEN    -
  cannot_write            PROVEN    -
  was_fenced              LIKELY    -
MARKER_OVERDUE
  has_no_leader           PROVEN    -
  nobody_acts             PROVEN    -
  refuses_the_marker,     PROVEN    -
  cannot_write            PROVEN    -
  was_fenced              LIKELY    -
  not_reachable           POSSIBLE  -
  KAFKA-16352             POSSIBLE  3.8
  KAFKA-19999             POSSIBLE  -
TIMEOUT_NOT_PASSED
  old_timestamps          LIKELY    -
OVERDUE
  nobody_acts             PROVEN    -
  cannot_write            PROVEN    -
  was_fenced              LIKELY    -
  old_timestamps          LIKELY    -
  KAFKA-20090             LIKELY    -
  timeout_scan            POSSIBLE  -
"""


def grid():
    rows, candidates = {}, []
    for line in GRID.strip().splitlines():
        if line.startswith(" "):
            words, likelihood, version = line.split()
            fixed_in = None if version == "-" else tuple(map(int, version.split(".")))
            candidates.append((words.replace("_", " "), Likelihood[likelihood], fixed_in))
        else:
            candidates = rows[Reason(line)] = []
    return rows


def test_the_candidates_are_the_grid():
    assert [*CAUSES] == [*grid()]
    for reason, rows in grid().items():
        found = [(rule.likelihood, rule.fixed_in) for rule in CAUSES[reason]]
        assert found == [row[1:] for row in rows], reason
        for rule, (words, _, _) in zip(CAUSES[reason], rows, strict=True):
            assert words in rule.cause, (reason, rule.cause)


#: Reason, partition, coordinator -> the candidates that are named, in order.
AHEAD = replace(PARTITION, producer_epoch=PREPARED.producer_epoch + 1, coordinator_epoch=99)
STARTED = replace(ONGOING, start_ms=PARTITION.last_timestamp_ms + 5 * MINUTE + 1)
NAMED = [
    ("WRITTEN_AFTER_MARKER", PARTITION, COMPLETE, []),
    ("WRITTEN_AFTER_MARKER", AFTER, COMPLETE, ["KAFKA-14402", "KAFKA-18957"]),
    ("WRITTEN_AFTER_MARKER", replace(AFTER, producer_epoch=AFTER.marker_epoch + 1), COMPLETE, ["KAFKA-18957"]),
    (
        "WRITTEN_AFTER_MARKER",
        AFTER,
        replace(COMPLETE, client_transaction_version=2),
        ["KAFKA-14402", "KAFKA-19446", "KAFKA-18957"],
    ),
    ("PARTITION_NOT_IN_TRANSACTION", AFTER, COMPLETE, ["KAFKA-14402", "KAFKA-12671"]),
    ("PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR", PARTITION, CLEANED, ["tombstone", "made up"]),
    ("PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR", MARKED, CLEANED, ["disk lost", "tombstone"]),
    ("PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR", PARTITION, NOBODY, ["made up"]),
    ("TRANSACTIONAL_ID_EXPIRED", PARTITION, COMPLETE, ["expired meanwhile"]),
    ("PRODUCER_ID_ROTATED", PARTITION, COMPLETE, ["has given up"]),
    ("EPOCH_AHEAD_OF_COORDINATOR", PARTITION, ONGOING, ["never assigned", "older copy"]),
    ("MARKER_REFUSED", PARTITION, PREPARED, []),
    (
        "MARKER_REFUSED",
        replace(PARTITION, producer_epoch=PREPARED.producer_epoch + 1),
        PREPARED,
        ["newer producer epoch"],
    ),
    ("MARKER_REFUSED", replace(PARTITION, coordinator_epoch=99), PREPARED, ["newer coordinator epoch"]),
    ("MARKER_REFUSED", AHEAD, PREPARED, ["newer producer epoch", "newer coordinator epoch"]),
    ("MARKER_OVERDUE", PARTITION, PREPARED, ["not reachable", "KAFKA-16352"]),
    (
        "MARKER_OVERDUE",
        PARTITION,
        replace(PREPARED, client_transaction_version=2),
        ["not reachable", "KAFKA-16352", "KAFKA-19999"],
    ),
    ("MARKER_OVERDUE", PARTITION, replace(PREPARED, client_transaction_version=1), ["not reachable", "KAFKA-16352"]),
    ("OVERDUE", PARTITION, replace(ONGOING, start_ms=None), ["timeout scan"]),
    ("OVERDUE", PARTITION, replace(ONGOING, start_ms=None, producer_epoch=32766), ["timeout scan"]),
    (
        "OVERDUE",
        PARTITION,
        replace(ONGOING, start_ms=None, producer_epoch=32767),
        ["KAFKA-20090", "timeout scan"],
    ),
    ("OVERDUE", PARTITION, STARTED, ["old timestamps", "timeout scan"]),
    ("OVERDUE", PARTITION, replace(STARTED, start_ms=PARTITION.last_timestamp_ms + 5 * MINUTE), ["timeout scan"]),
    ("TIMEOUT_NOT_PASSED", PARTITION, STARTED, ["old timestamps"]),
    ("EXPECTED", PARTITION, ONGOING, []),
]


@pytest.mark.parametrize(("reason", "partition", "coordinator", "words"), NAMED)
def test_only_causes_whose_signature_is_met_are_named(reason, partition, coordinator, words):
    found = [cause for _, cause in named(Reason(reason), partition, coordinator)]
    assert len(found) == len(words), found
    assert all(word in cause for word, cause in zip(words, found, strict=True)), found


#: Reason, partition, coordinator -> what the records show for the first cause.
SHOWN = [
    ("WRITTEN_AFTER_MARKER", AFTER, COMPLETE, "after the COMMIT marker at offset 29000, with its epoch 5"),
    ("WRITTEN_AFTER_MARKER", replace(AFTER, marker_type=None), COMPLETE, "after the end marker at offset 29000"),
    (
        "WRITTEN_AFTER_MARKER",
        replace(PARTITION, topic="__consumer_offsets"),
        COMPLETE,
        "last marker of this producer there: none",
    ),
    ("PARTITION_NOT_IN_TRANSACTION", PARTITION, COMPLETE, "no current record of bar lists foo-5"),
    (
        "PARTITION_NOT_IN_TRANSACTION",
        PARTITION,
        replace(COMPLETE, decision=LOST),
        "_state-3 has the decision (COMMIT) of bar",
    ),
    (
        "PARTITION_NOT_IN_TRANSACTION",
        PARTITION,
        replace(COMPLETE, commit_due=LOST),
        "has the decision (not known) of bar",
    ),
    ("TRANSACTIONAL_ID_EXPIRED", PARTITION, COMPLETE, "tombstone of bar at offset 77 of __transaction_state-3"),
    (
        "EPOCH_AHEAD_OF_COORDINATOR",
        PARTITION,
        replace(ONGOING, producer_epoch=3),
        "epoch 5 in the partition, 3 at the coordinator",
    ),
    (
        "MARKER_REFUSED",
        replace(PARTITION, coordinator_epoch=99),
        PREPARED,
        "epoch 99 in the partition, 19 is the newest in",
    ),
]


@pytest.mark.parametrize(("reason", "partition", "coordinator", "words"), SHOWN)
def test_a_cause_shows_the_fields_that_speak_for_it(reason, partition, coordinator, words):
    assert words in causes_of(Reason(reason), case(partition, coordinator))[0].evidence


# What the cluster's metadata log shows

DECIDED_MS = PARTITION.first_timestamp_ms or 1_700_000_000_000
DECIDED = replace(
    COMPLETE,
    decision=decided("COMMIT", 5, decided_ms=DECIDED_MS, completed_ms=DECIDED_MS + 100),
)
UNFINISHED = replace(DECIDED, decision=decided("COMMIT", 5, decided_ms=DECIDED_MS, completed_ms=None))


def elected(after_ms, leader=2, offset=40, **facts):
    at_ms = None if after_ms is None else DECIDED_MS + after_ms
    return Election(offset=None if at_ms is None else offset, at_ms=at_ms, leader=leader, leader_epoch=4, **facts)


LOSS, STUCK, LATE = Reason.PARTITION_NOT_IN_TRANSACTION, Reason.MARKER_OVERDUE, Reason.OVERDUE
ORPHAN = Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR
OPENED = replace(ONGOING, start_ms=DECIDED_MS)
UNCLEAN, LEADERLESS = elected(5_000, is_unclean=True), elected(None, leader=None)
FENCED = FencedBroker(offset=50, at_ms=DECIDED_MS + 7_000, broker=3)
LOWERED = LoweredFeature(offset=9, at_ms=DECIDED_MS + 1, level_before=2, level=1)


def of(*elections, **facts):
    return Given(elections=elections, **facts)


def led(*elections, fenced=()):
    return Given(coordinator_elections=elections, fenced=fenced)


def until(ms, after=None, leader=3):
    return elected(after, leader=leader, until_ms=DECIDED_MS + ms)


FIRST, AGAIN = elected(-9_000, topic_id="a"), elected(5_000, topic_id="b", is_first=True)
REMOVED, CREATED = "an unclean election removed", "deleted and created again"
AHEAD_OF, COORDINATOR_LOST = Reason.EPOCH_AHEAD_OF_COORDINATOR, "removed the coordinator's newest records"
#: Reason, coordinator, what the metadata log shows, likelihood and words of the cause; None: it is not named.
PROOFS = {
    "an unclean election after a completed decision": (LOSS, DECIDED, of(UNCLEAN), "PROVEN", REMOVED),
    "an unclean election after a decision that was not completed": (LOSS, UNFINISHED, of(UNCLEAN), "LIKELY", REMOVED),
    "an unclean election before the decision": (LOSS, DECIDED, of(elected(-5_000, is_unclean=True)), None, REMOVED),
    "a clean election": (LOSS, DECIDED, of(elected(5_000)), None, REMOVED),
    "an unclean election, but nothing is missing": (LOSS, COMPLETE, of(UNCLEAN), None, REMOVED),
    "of unknown time": (LOSS, DECIDED, of(elected(None, is_unclean=True)), "LIKELY", "elected without being in sync"),
    "a topic that was created again": (LOSS, DECIDED, of(FIRST, AGAIN), "PROVEN", CREATED),
    "a topic that was created for the first time": (LOSS, DECIDED, of(AGAIN), None, CREATED),
    "no leader at completion": (LOSS, DECIDED, of(until(900, -50, None), elected(900)), "LIKELY", "had no leader"),
    "no leader when it was complete": (
        LOSS,
        DECIDED,
        of(until(900, 100, None), elected(900)),
        "LIKELY",
        "had no leader",
    ),
    "no leader just later": (LOSS, DECIDED, of(until(900, 101, None), elected(900)), None, "had no leader"),
    "no leader only later": (LOSS, DECIDED, of(elected(5_000, leader=None)), None, "had no leader"),
    "a lowered feature": (LOSS, DECIDED, of(lowered=(LOWERED,)), "LIKELY", "was lowered"),
    "no leader, so no marker": (STUCK, PREPARED, of(LEADERLESS), "PROVEN", "no leader"),
    "a leader that is none": (STUCK, PREPARED, of(LEADERLESS), None, "not reachable"),
    "a leader": (STUCK, PREPARED, of(elected(None)), None, "has no leader, so"),
    "no leader of the coordinator's partition": (LATE, OPENED, led(LEADERLESS), "PROVEN", "nobody acts"),
    "a fenced coordinator": (
        LATE,
        OPENED,
        led(until(7_000), elected(7_000, leader=1), fenced=(FENCED,)),
        "LIKELY",
        "was fenced",
    ),
    "another broker that was fenced": (
        LATE,
        OPENED,
        led(elected(None, leader=1), fenced=(FENCED,)),
        None,
        "was fenced",
    ),
    "a coordinator that was fenced before": (
        *(LATE, OPENED),
        led(until(-7_000), elected(-7_000, leader=1), fenced=(replace(FENCED, at_ms=DECIDED_MS - 7_000),)),
        *(None, "was fenced"),
    ),
    "an unclean election of the coordinator": (AHEAD_OF, OPENED, led(UNCLEAN), "PROVEN", COORDINATOR_LOST),
    "one before the transaction began": (
        AHEAD_OF,
        OPENED,
        led(elected(-5_000, is_unclean=True)),
        None,
        COORDINATOR_LOST,
    ),
    "a clean election of the coordinator": (AHEAD_OF, OPENED, led(elected(5_000)), None, COORDINATOR_LOST),
    "a producer id that nobody handed out": (
        ORPHAN,
        NOBODY,
        of(is_never_allocated=True),
        "PROVEN",
        "no coordinator made the",
    ),
}


@pytest.mark.parametrize("name", PROOFS)
def test_the_metadata_log_proves_a_cause_only_where_it_shows_it(name):
    reason, coordinator, cluster, likelihood, words = PROOFS[name]
    has_leader = not (cluster.get("elections") and cluster.get("elections")[-1].leader is None)
    partition = replace(PARTITION, stamped_before_ms=None, has_leader=has_leader)
    coordinated = not (cluster.get("coordinator_elections") and cluster.get("coordinator_elections")[-1].leader is None)
    coordinator = replace(coordinator, has_leader=coordinated)
    found = {cause.cause: cause for cause in causes_of(reason, case(partition, coordinator, cluster=cluster))}
    named = [cause.likelihood for text, cause in found.items() if words in text]
    assert named == ([] if likelihood is None else [likelihood])
    assert not any("{" in cause.evidence + cause.cause for cause in found.values())


def test_a_proof_takes_the_place_of_the_guess():
    cluster = of(UNCLEAN)
    assert not any(
        "or the copy is an older one" in c.cause for c in causes_of(LOSS, case(PARTITION, DECIDED, cluster=cluster))
    )
    assert any("or the copy is an older one" in c.cause for c in causes_of(LOSS, case(PARTITION, DECIDED)))


def test_a_proof_names_the_metadata_record_and_what_was_lost():
    partition = replace(PARTITION, truncated_from=88, truncated_until=93)
    cluster = of(replace(UNCLEAN, leader=3))
    proof = causes_of(LOSS, case(partition, DECIDED, cluster=cluster))[0].evidence
    assert proof.startswith("offset 40 of __cluster_metadata, ")
    assert "broker 3 became the leader of " in proof
    assert "another copy still has the offsets 88 to 93 that it removed" in proof
