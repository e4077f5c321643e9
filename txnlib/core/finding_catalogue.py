"""The catalogue of findings: severity, topic and meaning of each, what to do, and what brokers log about it.

A finding has the name of the error that a broker would have returned, if there is one (Kafka: `Errors`). Reading a log
is a replay: batches that a leader would have refused are accepted, as in replication and recovery, and reported.

docs/rules/reference.md and the findings in docs/runbook.md are rendered from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Final


class Severity(IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3


class Topic(StrEnum):
    """What a finding is about: its section in the runbook."""

    OUTCOME = "The outcome of a transaction"
    BATCHES = "Batches of a producer"
    RECORDS = "Records of a coordinator"
    LEFT_BEHIND = "What is left behind"
    FILES = "Files"
    FORECASTS = "What will go wrong next"


@dataclass(frozen=True, slots=True)
class FindingRule:
    severity: Severity
    topic: Topic
    meaning: str
    #: What to do, for the runbook. Findings of a topic with the same advice share an entry.
    advice: str
    #: Names of the lines that brokers log about it (`broker_logs.kafka_lines`), with spaces between them.
    logs: str
    #: Why the fault itself is not logged; None if it is.
    not_logged: str | None


#: What several findings have in common: first advice, then why brokers log nothing.
_SHARED: Final[Mapping[str, str]] = {
    "ACCEPTED_BY_A_LEADER": (
        "a leader accepted a batch that it should have refused. An unclean election or removed records explain this. If"
        " neither happened, keep the segments and report the problem to Apache Kafka with the rows of `findings`."
    ),
    "TWO_COORDINATORS": (
        "two brokers acted as the same coordinator. Look for long pauses or a network partition at that time, and"
        " compare what the two decided about each transaction."
    ),
    "WRITTEN_BY_NO_COORDINATOR": (
        "no coordinator writes such records. Check that the copies are from one cluster and one time. If they are, look"
        " for an unclean election of that `__transaction_state` partition."
    ),
    "CAPTURE_AGAIN": (
        "abort nothing on the strength of this log. Capture again. If the two still disagree, restart or move the"
        " leader, so that it loads its state from the log, and report the problem to Apache Kafka with both captures."
    ),
    "EXPLAINS_WHAT_FOLLOWS": "nothing to do. They explain the records that follow.",
    "SELDOM_HARMFUL": (
        "odd, but seldom harmful by themselves. If a transaction of the same id hangs, they help to explain it."
    ),
    "REUSE_IDS": (
        "an application creates a new id for each use. Make it reuse its ids, because brokers keep every id in memory"
        " until it expires."
    ),
    "REBUILD_THE_INDEX": (
        "the index of that segment is wrong. Stop the broker, remove that `.txnindex`, and let it be rebuilt. Until"
        " then consumers may read aborted records or miss committed ones."
    ),
    "BY_HAND": (
        "brokers do not log the WriteTxnMarkers request of kafka-transactions.sh. Only the request log has it, at DEBUG"
    ),
    "NOT_CHECKED": "coordinators do not check this field, neither when they write nor when they load",
    "NOT_COMPARED": "brokers do not compare their memory with their logs after they have loaded them",
    "NOT_YET": "it is a forecast, and what it is about has not happened yet",
    "INDEX_NOT_READ": "a broker reads the transaction index without checking it, except when it starts after a crash",
    "TIMESTAMP_ACCEPTED": (
        "a leader that accepts a timestamp logs nothing. The lines are records that were refused, and their partition"
    ),
    "NOT_NOTICED": "the coordinator that wrote the record did not notice. The line is a refused step",
}
_PART: Final = re.compile(r"\n\s*(do|logs|not logged): ")


def _row(text: str) -> FindingRule:
    """A rule by its text: severity and topic, what it means, `do:` what to do (one of `_SHARED`, perhaps).

    `logs:` names of lines in `broker_logs.kafka_lines`; `not logged:` why the fault itself is not in the logs.
    """
    head, *parts = _PART.split(text)
    kinds, meaning = head.split("\n", 1)
    severity, topic = kinds.split(", ")
    given = {name: " ".join(words.split()) for name, words in zip(parts[::2], parts[1::2], strict=True)}
    advice, not_logged = given["do"], given.get("not logged")
    return FindingRule(
        Severity[severity],
        Topic[topic],
        " ".join(meaning.split()),
        _SHARED.get(advice, advice),
        given.get("logs", ""),
        not_logged and _SHARED.get(not_logged, not_logged),
    )


class Finding(Enum):
    """A finding: its name, and its rule as the value."""

    # A partition's log
    INVALID_PRODUCER_EPOCH = _row("""ERROR, BATCHES
        A batch or marker with an older producer epoch follows one with a newer epoch. No correct leader accepts that.
        do: ACCEPTED_BY_A_LEADER
        logs: COPIED_EPOCH REFUSED_EPOCH
    """)
    OUT_OF_ORDER_SEQUENCE_NUMBER = _row("""WARNING, BATCHES
        The first sequence of a batch does not follow the last sequence of its producer: records are missing or repeated.
        do: ACCEPTED_BY_A_LEADER
        logs: REFUSED_SEQUENCE
        not logged: a leader that accepts a gap logs nothing, and followers do not check. The line is a batch that was
        refused
    """)
    INVALID_TXN_STATE = _row("""ERROR, BATCHES
        A non-transactional batch is inside an open transaction of the same producer.
        do: ACCEPTED_BY_A_LEADER
        logs: REFUSED_NON_TRANSACTIONAL FETCHER_FAILED
    """)
    TRANSACTION_COORDINATOR_FENCED = _row("""ERROR, OUTCOME
        A marker with an older coordinator epoch follows one with a newer epoch: a deposed coordinator was still writing.
        do: TWO_COORDINATORS
        logs: COPIED_COORDINATOR_EPOCH REFUSED_COORDINATOR_EPOCH ELECTED RESIGNED
    """)
    TIMESTAMP_IN_FUTURE = _row("""WARNING, BATCHES
        The last write of a producer is stamped later than the instant of the audit: the client's clock is wrong, and so are
        ages derived from it.
        do: the client's clock is wrong. Ages derived from it are wrong too, and time-based retention keeps the segments too
        long.
        logs: REFUSED_TIMESTAMP REFUSED_APPEND
        not logged: TIMESTAMP_ACCEPTED
    """)
    INVALID_TIMESTAMP = _row("""WARNING, BATCHES
        The last write of a producer, or the last record of a transactional id, has a timestamp that is out of range (before
        1970 or after the year 9999; nanoseconds, for example): ages derived from it are unknown.
        do: the client sets its own timestamps in a unit other than milliseconds, or leaves them unset. Correct the client.
        Brokers from 4.0 on refuse such records; older brokers refuse them with `message.timestamp.difference.max.ms`. In a
        coordinator's record, such a timestamp is damage: compare another replica.
        logs: REFUSED_TIMESTAMP REFUSED_APPEND
        not logged: TIMESTAMP_ACCEPTED
    """)
    CORRUPT_MESSAGE = _row("""ERROR, BATCHES
        The CRC of a batch does not match, so its header cannot be trusted. A verdict depends on the batch, or the batch is
        odd.
        do: a batch of an open transaction is damaged on that disk. Copy another replica; `quarantine` has the position.
        logs: FETCHED_CORRUPT RECOVERY_TRUNCATED
        not logged: a leader returns the error to the producer and logs nothing. The lines are of followers, and of a start
    """)
    # The coordinator's log
    INVALID_TRANSACTION_TIMEOUT = _row("""WARNING, RECORDS
        A transactional id has a timeout that brokers refuse: 0, negative, or above transaction.max.timeout.ms.
        do: brokers refuse such a timeout. Check `transaction_max_timeout_ms` in capture.json: the limit may have been
        lowered.
        not logged: the coordinator returns INVALID_TRANSACTION_TIMEOUT to the application and logs nothing
    """)
    ILLEGAL_TRANSITION = _row("""ERROR, RECORDS
        Two consecutive records of a transactional id form a step that the coordinator never takes.
        do: WRITTEN_BY_NO_COORDINATOR
        logs: ILLEGAL_STEP
        not logged: NOT_NOTICED
    """)
    SUSPICIOUS_PHANTOM_APPEND = _row("""INFO, RECORDS
        A record looks like an append that timed out: the coordinator rolled it back in memory, but not in the log.
        do: EXPLAINS_WHAT_FOLLOWS
        logs: APPEND_FAILED FENCE_FAILED
    """)
    STATE_NEVER_WRITTEN = _row("""ERROR, RECORDS
        A record contains a state that exists only in the coordinator's memory.
        do: WRITTEN_BY_NO_COORDINATOR
        not logged: coordinators load the state from their log without checking that it may be there
    """)
    PARTITIONS_CHANGED = _row("""WARNING, RECORDS
        A transaction lost partitions, or its Prepare record lists other partitions than the record before it.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    TIMEOUT_CHANGED = _row("""WARNING, RECORDS
        The timeout changed at a step other than an initialisation.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    START_TIMESTAMP_MISSING = _row("""WARNING, RECORDS
        A record of a transaction that has begun has no start time.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    START_TIMESTAMP_IN_EMPTY = _row("""WARNING, RECORDS
        A record in state Empty has the start time of a transaction.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    START_TIMESTAMP_CHANGED = _row("""WARNING, RECORDS
        The start time changed between two records of one transaction.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    PARTITIONS_IN_EMPTY = _row("""WARNING, RECORDS
        A record in state Empty lists partitions.
        do: SELDOM_HARMFUL
        not logged: NOT_CHECKED
    """)
    PRODUCER_ID_CHANGED = _row("""ERROR, RECORDS
        The producer id changed at a step that is neither an initialisation nor a completion with exhausted epochs.
        do: WRITTEN_BY_NO_COORDINATOR
        logs: ILLEGAL_STEP
        not logged: NOT_NOTICED
    """)
    PRODUCER_EPOCH_WENT_BACK = _row("""ERROR, RECORDS
        The epoch of a producer id decreased between two records.
        do: WRITTEN_BY_NO_COORDINATOR
        logs: ILLEGAL_STEP
        not logged: NOT_NOTICED
    """)
    UNEXPECTED_PRODUCER_EPOCH = _row("""WARNING, RECORDS
        A step ends with an epoch that the coordinator would not assign: it raises an epoch only by 1, when it initialises
        an id or ends a transaction.
        do: SELDOM_HARMFUL
        logs: FENCE_FAILED INITIALIZED
    """)
    EPOCH_DOUBLE_BUMP = _row("""INFO, RECORDS
        A coordinator's abort raised the epoch by two (KAFKA-19367, Kafka 4.0.0). Harmless on its own.
        do: EXPLAINS_WHAT_FOLLOWS
        logs: ROLLED_BACK
        not logged: brokers 4.0.0 log the abort, not its epoch
    """)
    COORDINATOR_EPOCH_WENT_BACK = _row("""ERROR, RECORDS
        The leader epoch of a coordinator partition decreased between two records: two coordinators wrote to it.
        do: WRITTEN_BY_NO_COORDINATOR
        logs: ELECTED RESIGNED
    """)
    EPOCH_BEYOND_EXHAUSTION = _row("""WARNING, RECORDS
        A transactional id is Empty or Ongoing at an epoch that no client may have: it cannot be fenced (KAFKA-20090).
        do: the id can no longer be fenced (KAFKA-20090). Stop its application, then let the id expire or give the
        application another id.
        logs: EPOCH_EXHAUSTED SCAN_FAILED
    """)
    # Between the logs
    PRODUCER_ID_OWNED_TWICE = _row("""CRITICAL, RECORDS
        Two transactional ids claim the same producer id: the logs are corrupt, or from different clusters.
        do: check that the inputs are from one cluster. If they are, a block of producer ids was handed out twice: stop both
        applications before they fence each other's data.
        logs: GIVEN_TO PRODUCER_IDS_WRONG PRODUCER_IDS_KRAFT PRODUCER_IDS_ZOOKEEPER
    """)
    WRONG_COORDINATOR_PARTITION = _row("""WARNING, RECORDS
        A transactional id is in a coordinator partition other than the one that its hash selects.
        do: someone added partitions to `__transaction_state` while it was in use, so its ids have two coordinators. No
        abort is safe until that is undone.
        logs: PARTITIONS_ADDED
    """)
    SPLIT_OUTCOME = _row("""CRITICAL, OUTCOME
        A marker contradicts the coordinator's decision: the transaction is committed in one place and aborted in another.
        do: the transaction is committed in one place and aborted in another. Stop the consumers of the named partitions,
        compare the partitions with the decision in `transactions`, and repair the data with the application's own tools. If
        an abort by hand caused the split, find out who ran it.
        logs: WRONG_RESULT MARKERS_CANCELLED
        not logged: BY_HAND
    """)
    MARKER_MISSING = _row("""CRITICAL, OUTCOME
        A completed transaction has no marker on one of its partitions, although the log of that partition extends from
        before the transaction to after it. The severity is WARNING if the transaction was aborted, because an abort by hand
        repairs that.
        do: the coordinator considers the transaction complete, but a partition never got its marker. The records there are
        read as part of the producer's next transaction, or block consumers as `HANGING`. Check for an unclean election of
        that partition at the time in `completed`.
        logs: MARKER_SKIPPED UNCLEAN_KRAFT UNCLEAN_TRIGGERED ELECTED_FROM_OFFLINE TRUNCATED
    """)
    MARKER_WITHOUT_DECISION = _row("""WARNING, OUTCOME
        No captured decision explains a marker. An ABORT may have been written by hand (kafka-transactions.sh abort); no
        Kafka tool writes a COMMIT.
        do: if the marker is an ABORT, someone aborted by hand. This is expected after an abort plan; otherwise ask who did
        it. If it is a COMMIT, the coordinator's records are missing.
        not logged: BY_HAND
    """)
    MARKER_OF_DEPOSED_COORDINATOR = _row("""ERROR, OUTCOME
        A marker has an older coordinator epoch than the decision: a deposed coordinator wrote it.
        do: TWO_COORDINATORS
        logs: NO_LONGER_COORDINATOR MARKERS_CANCELLED ELECTED RESIGNED
    """)
    ABORTED_WHILE_ONGOING = _row("""ERROR, OUTCOME
        An ABORT marker was written to a partition of a transaction that is still Ongoing. If the transaction commits, its
        outcome is split. Stop its application before it commits.
        do: someone aborted one partition of a transaction that is still open. Stop its application before it commits. The
        coordinator then aborts the other partitions at the timeout, and the outcome is not split.
        not logged: BY_HAND
    """)
    DUPLICATE_MARKER = _row("""INFO, OUTCOME
        A marker was written twice, which happens after a failover of its coordinator. Harmless.
        do: nothing to do.
        logs: REPEATED_MARKER MARKERS_AFTER_LOADING MARKER_RETRIED
    """)
    WRITTEN_BEFORE_TRANSACTION = _row("""ERROR, OUTCOME
        Records were written before the transaction that ended them: they came too late for the previous one, or its marker was
        lost.
        do: records became part of the wrong transaction (KAFKA-14402; or, with UNCLEAN_LEADER_ELECTION, a leader lost a marker).
        Compare them with the source of the data, and upgrade to transactions v2.
        logs: ROLLED_BACK PRODUCER_RETRIED
        not logged: a leader that accepts a batch logs nothing. The lines show what made the batch late
    """)
    UNKNOWN_TOPIC_OR_PARTITION = _row("""WARNING, LEFT_BEHIND
        A transaction that has not ended lists a partition whose topic no longer exists: its records there are lost.
        do: the topic was deleted while the transaction was open. The transaction ends by itself; the records that it wrote
        there are lost.
        logs: TOPIC_REMOVED_KRAFT TOPIC_REMOVED_ZOOKEEPER LOG_DELETED MARKER_SKIPPED
    """)
    # Of many producers together
    TRANSACTIONAL_IDS_NOT_REUSED = _row("""WARNING, LEFT_BEHIND
        An application abandons its transactional ids after one use. Coordinators keep each id until it expires. The
        severity is INFO while there are few.
        do: REUSE_IDS
        logs: INITIALIZED
    """)
    PRODUCER_IDS_NOT_REUSED = _row("""WARNING, LEFT_BEHIND
        Producers of a partition wrote one batch each and were then abandoned. The broker keeps each producer until it
        expires. The severity is INFO while there are few.
        do: REUSE_IDS
        logs: PRODUCER_IDS_KRAFT PRODUCER_IDS_ZOOKEEPER
        not logged: brokers do not log a new producer. The lines are blocks of 1,000 producer ids
    """)
    # Between copies and files of one partition
    COPIES_DISAGREE = _row("""ERROR, FILES
        Copies of a partition have different batches at the same offset below their high watermarks: there was an unclean
        election, or the files are from different clusters.
        do: there was an unclean election, or the files are from different clusters. Decide which replica is right before
        you rely on any other result for the partition.
        logs: UNCLEAN_KRAFT UNCLEAN_TRIGGERED ELECTED_FROM_OFFLINE TRUNCATED
    """)
    # The cluster's metadata log
    UNCLEAN_LEADER_ELECTION = _row("""WARNING, OUTCOME
        A broker became the leader of a partition without being in sync: records, and markers among them, may be lost.
        do: records that were acknowledged may be gone. Look for transactions whose markers are missing, for a disk that
        still has the lost offsets, and for `unclean.leader.election.enable`.
        logs: UNCLEAN_KRAFT UNCLEAN_TRIGGERED ELECTED_FROM_OFFLINE TRUNCATED
    """)
    PRODUCER_ID_NEVER_ALLOCATED = _row("""WARNING, BATCHES
        The cluster never handed out the producer id: it is beyond every block in the metadata log.
        do: a client made the producer id up, or the records come from another cluster. Find the client that wrote them.
        logs: PRODUCER_IDS_KRAFT PRODUCER_IDS_ZOOKEEPER
        not logged: no broker checks who made a producer id. The lines show the ids that the cluster handed out
    """)
    CAPTURE_JSON_CONTRADICTED = _row("""WARNING, FILES
        The notes in capture.json and the cluster's metadata log contradict each other. capture.json is used.
        do: correct capture.json, or leave out what the metadata log contains. Check that both are from one cluster.
        not logged: the contradiction is in the capture, not in the cluster
    """)
    COPY_OF_DELETED_TOPIC = _row("""INFO, FILES
        A copy belongs to a topic that was deleted, perhaps to be created again. It is not judged.
        do: nothing to do, unless you need the records of the deleted topic. A broker that was down during the deletion
        removes them.
        logs: TOPIC_REMOVED_KRAFT TOPIC_REMOVED_ZOOKEEPER LOG_DELETED LOG_STRAY
    """)
    OPEN_ON_REPLICA = _row("""WARNING, FILES
        A replica has a transaction open that the log of the leader does not show: retention or compaction removed its records
        there, or its marker before the replica read it. `find-hanging --broker-id` of its broker lists it. If that broker becomes
        the leader, read_committed consumers stop there.
        do: move the replica to another broker and back (kafka-reassign-partitions.sh): a new replica builds its state from the
        log of the leader.
        not logged: NOT_COMPARED
    """)
    ABORT_NOT_INDEXED = _row("""ERROR, FILES
        An aborted transaction is not in the transaction index: read_committed consumers read its records.
        do: REBUILD_THE_INDEX
        logs: INDEX_REBUILT
        not logged: INDEX_NOT_READ
    """)
    INDEXED_ABORT_NOT_IN_LOG = _row("""ERROR, FILES
        The transaction index lists an abort whose marker is not in the log: consumers skip records that were not aborted.
        do: REBUILD_THE_INDEX
        logs: INDEX_REBUILT
        not logged: INDEX_NOT_READ
    """)
    LIVE_PRODUCER_DISAGREES = _row("""ERROR, FILES
        The leader and its log disagree about the open transaction of a producer.
        do: CAPTURE_AGAIN
        not logged: NOT_COMPARED
    """)
    LIVE_STABLE_OFFSET_DISAGREES = _row("""ERROR, FILES
        The leader answered a last stable offset below its high watermark, and the log shows no transaction that was open
        there.
        do: CAPTURE_AGAIN
        not logged: NOT_COMPARED
    """)
    LIVE_STATE_DISAGREES = _row("""ERROR, FILES
        The coordinator and its log disagree about the state of a transactional id.
        do: CAPTURE_AGAIN
        not logged: NOT_COMPARED
    """)
    LIVE_OWNER_UNKNOWN = _row("""ERROR, FILES
        A coordinator described a transactional id with a producer id that no captured record of the id names.
        do: CAPTURE_AGAIN
        not logged: NOT_COMPARED
    """)
    # Forecasts. The rules are in `core.findings.forecast_findings`; the evidence has the arithmetic, and `expected` the
    # date.
    PRODUCER_EPOCHS_RUN_OUT = _row("""INFO, FORECASTS
        The producer id of a transactional id will have used all its epochs, and its coordinator then gives the id a new
        producer id. The severity is WARNING in the last week, unless the id gets there every month anyway.
        do: usually nothing: Kafka rotates the producer id by itself. Before the date, upgrade brokers that have
        KAFKA-20090, because at the last epoch a transaction may become impossible to fence, and make sure that nothing
        outside of Kafka stores the producer id, as a two-phase commit may. If the rate surprises you, look for an
        application that initialises its producer again and again. Under transactions v2, every end of a transaction uses an
        epoch.
        not logged: NOT_YET
    """)
    TRANSACTIONAL_ID_EXPIRES = _row("""INFO, FORECASTS
        A transactional id will expire although its producer id has an open transaction: then no coordinator knows who wrote
        it. The severity is WARNING in the last two days.
        do: settle the open transaction before the date (`txn-audit explain`). Afterwards its transactional id, and with it
        the application, can no longer be found in the coordinators' logs. Keep a copy of the coordinator's partition.
        not logged: NOT_YET
    """)
    PRODUCER_IDS_FILL_MEMORY = _row("""INFO, FORECASTS
        The number of producers that a broker keeps in memory grows towards a million, at about 400 bytes each. The severity
        is WARNING if that is less than a week away.
        do: find the clients that create a new producer for each piece of work (`PRODUCER_IDS_NOT_REUSED`), and let them
        reuse it. Until then, lower `producer.id.expiration.ms`, or give the broker more memory.
        not logged: NOT_YET
    """)
    CLIENT_BEHIND_TRANSACTION_VERSION = _row("""INFO, FORECASTS
        Clients of an application still use version 0 or 1 of transactions although the cluster offers version 2: their late
        writes can still hang.
        do: upgrade the clients (Kafka's Java client 4.0 or later), and restart producers that were connected before
        `transaction.version` was raised. Until then, a late write can hang as before (KAFKA-14402).
        not logged: NOT_YET
    """)
    LAST_STABLE_OFFSET_STANDS_STILL = _row("""INFO, FORECASTS
        The last stable offset of a partition was the same in at least three audits, although no verdict calls the partition
        blocked yet. The severity is WARNING from one day on.
        do: find out why the named transaction is open for longer than one night: a prepared two-phase commit, a timeout
        that is too long, or a client whose clock is ahead. `read_committed` consumers wait at that offset.
        not logged: NOT_YET
    """)


#: Every finding with its rule.
FINDINGS: Final = {finding: finding.value for finding in Finding}
