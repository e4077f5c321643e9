"""The catalogue of findings: one row each, with its severity, its meaning, and what to do.

A finding has the name of the error that a broker would have returned, if there is one (Kafka: `Errors`). Reading a log is a
replay: batches that a leader would have refused are accepted, as in replication and recovery, and reported.

docs/rules/reference.md and the findings in docs/runbook.md are rendered from the rows.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from txnlib.core import finding_advice as advice
from txnlib.core.finding_rule import FindingRule, Severity, Topic

__all__ = ["FINDINGS", "Finding", "FindingRule", "Severity", "Topic"]


_I, _W, _E, _C = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL


class Finding(Enum):
    """A finding: its name, and its rule as the value."""

    # A partition's log
    INVALID_PRODUCER_EPOCH = FindingRule(
        _E,
        Topic.BATCHES,
        "A batch or marker with an older producer epoch follows one with a newer epoch. No correct leader accepts that.",
        advice.ACCEPTED_BY_A_LEADER,
    )
    OUT_OF_ORDER_SEQUENCE_NUMBER = FindingRule(
        _W,
        Topic.BATCHES,
        "The first sequence of a batch does not follow the last sequence of its producer: records are missing or repeated.",
        advice.ACCEPTED_BY_A_LEADER,
    )
    INVALID_TXN_STATE = FindingRule(
        _E,
        Topic.BATCHES,
        "A non-transactional batch is inside an open transaction of the same producer.",
        advice.ACCEPTED_BY_A_LEADER,
    )
    TRANSACTION_COORDINATOR_FENCED = FindingRule(
        _E,
        Topic.OUTCOME,
        "A marker with an older coordinator epoch follows one with a newer epoch: a deposed coordinator was still writing.",
        advice.TWO_COORDINATORS,
    )
    TIMESTAMP_IN_FUTURE = FindingRule(
        _W,
        Topic.BATCHES,
        (
            "The last write of a producer is stamped later than the instant of the audit: the client's clock is wrong, and so are "
            "ages derived from it."
        ),
        "the client's clock is wrong. Ages derived from it are wrong too, and time-based retention keeps the segments too long.",
    )
    INVALID_TIMESTAMP = FindingRule(
        _W,
        Topic.BATCHES,
        (
            "The last write of a producer, or the last record of a transactional id, has a timestamp that is out of range (before "
            "1970 or after the year 9999; nanoseconds, for example): ages derived from it are unknown."
        ),
        (
            "the client sets its own timestamps in a unit other than milliseconds, or leaves them unset. Correct the client. "
            "Brokers from 4.0 on refuse such records; older brokers refuse them with `message.timestamp.difference.max.ms`. In a "
            "coordinator's record, such a timestamp is damage: compare another replica."
        ),
    )
    CORRUPT_MESSAGE = FindingRule(
        _E,
        Topic.BATCHES,
        (
            "The CRC of a batch does not match, so its header cannot be trusted. A verdict depends on the batch, or the batch is "
            "odd."
        ),
        "a batch of an open transaction is damaged on that disk. Copy another replica; `quarantine` has the position.",
    )
    # The coordinator's log
    INVALID_TRANSACTION_TIMEOUT = FindingRule(
        _W,
        Topic.RECORDS,
        "A transactional id has a timeout that brokers refuse: 0, negative, or above transaction.max.timeout.ms.",
        "brokers refuse such a timeout. Check `transaction_max_timeout_ms` in capture.json: the limit may have been lowered.",
    )
    ILLEGAL_TRANSITION = FindingRule(
        _E,
        Topic.RECORDS,
        "Two consecutive records of a transactional id form a step that the coordinator never takes.",
        advice.WRITTEN_BY_NO_COORDINATOR,
    )
    SUSPICIOUS_PHANTOM_APPEND = FindingRule(
        _I,
        Topic.RECORDS,
        "A record looks like an append that timed out: the coordinator rolled it back in memory, but not in the log.",
        advice.EXPLAINS_WHAT_FOLLOWS,
    )
    STATE_NEVER_WRITTEN = FindingRule(
        _E,
        Topic.RECORDS,
        "A record contains a state that exists only in the coordinator's memory.",
        advice.WRITTEN_BY_NO_COORDINATOR,
    )
    PARTITIONS_CHANGED = FindingRule(
        _W,
        Topic.RECORDS,
        "A transaction lost partitions, or its Prepare record lists other partitions than the record before it.",
        advice.SELDOM_HARMFUL,
    )
    TIMEOUT_CHANGED = FindingRule(
        _W,
        Topic.RECORDS,
        "The timeout changed at a step other than an initialisation.",
        advice.SELDOM_HARMFUL,
    )
    START_TIMESTAMP_MISSING = FindingRule(
        _W,
        Topic.RECORDS,
        "A record of a transaction that has begun has no start time.",
        advice.SELDOM_HARMFUL,
    )
    START_TIMESTAMP_IN_EMPTY = FindingRule(
        _W,
        Topic.RECORDS,
        "A record in state Empty has the start time of a transaction.",
        advice.SELDOM_HARMFUL,
    )
    START_TIMESTAMP_CHANGED = FindingRule(
        _W,
        Topic.RECORDS,
        "The start time changed between two records of one transaction.",
        advice.SELDOM_HARMFUL,
    )
    PARTITIONS_IN_EMPTY = FindingRule(
        _W,
        Topic.RECORDS,
        "A record in state Empty lists partitions.",
        advice.SELDOM_HARMFUL,
    )
    PRODUCER_ID_CHANGED = FindingRule(
        _E,
        Topic.RECORDS,
        "The producer id changed at a step that is neither an initialisation nor a completion with exhausted epochs.",
        advice.WRITTEN_BY_NO_COORDINATOR,
    )
    PRODUCER_EPOCH_WENT_BACK = FindingRule(
        _E,
        Topic.RECORDS,
        "The epoch of a producer id decreased between two records.",
        advice.WRITTEN_BY_NO_COORDINATOR,
    )
    UNEXPECTED_PRODUCER_EPOCH = FindingRule(
        _W,
        Topic.RECORDS,
        (
            "A step ends with an epoch that the coordinator would not assign: it raises an epoch only by 1, when it initialises an "
            "id or ends a transaction."
        ),
        advice.SELDOM_HARMFUL,
    )
    EPOCH_DOUBLE_BUMP = FindingRule(
        _I,
        Topic.RECORDS,
        "A coordinator's abort raised the epoch by two (KAFKA-19367, Kafka 4.0.0). Harmless on its own.",
        advice.EXPLAINS_WHAT_FOLLOWS,
    )
    COORDINATOR_EPOCH_WENT_BACK = FindingRule(
        _E,
        Topic.RECORDS,
        "The leader epoch of a coordinator partition decreased between two records: two coordinators wrote to it.",
        advice.WRITTEN_BY_NO_COORDINATOR,
    )
    EPOCH_BEYOND_EXHAUSTION = FindingRule(
        _W,
        Topic.RECORDS,
        "A transactional id is Empty or Ongoing at an epoch that no client may have: it cannot be fenced (KAFKA-20090).",
        (
            "the id can no longer be fenced (KAFKA-20090). Stop its application, then let the id expire or give the application "
            "another id."
        ),
    )
    # Between the logs
    PRODUCER_ID_OWNED_TWICE = FindingRule(
        _C,
        Topic.RECORDS,
        "Two transactional ids claim the same producer id: the logs are corrupt, or from different clusters.",
        (
            "check that the inputs are from one cluster. If they are, a block of producer ids was handed out twice: stop both "
            "applications before they fence each other's data."
        ),
    )
    WRONG_COORDINATOR_PARTITION = FindingRule(
        _W,
        Topic.RECORDS,
        "A transactional id is in a coordinator partition other than the one that its hash selects.",
        (
            "someone added partitions to `__transaction_state` while it was in use, so its ids have two coordinators. No abort is "
            "safe until that is undone."
        ),
    )
    SPLIT_OUTCOME = FindingRule(
        _C,
        Topic.OUTCOME,
        "A marker contradicts the coordinator's decision: the transaction is committed in one place and aborted in another.",
        (
            "the transaction is committed in one place and aborted in another. Stop the consumers of the named partitions, compare "
            "the partitions with the decision in `transactions`, and repair the data with the application's own tools. If an abort "
            "by hand caused the split, find out who ran it."
        ),
    )
    MARKER_MISSING = FindingRule(
        _C,
        Topic.OUTCOME,
        (
            "A completed transaction has no marker on one of its partitions, although the log of that partition extends from "
            "before the transaction to after it. The severity is WARNING if the transaction was aborted, because an abort by hand "
            "repairs that."
        ),
        (
            "the coordinator considers the transaction complete, but a partition never got its marker. The records there are read "
            "as part of the producer's next transaction, or block consumers as `HANGING`. Check for an unclean election of that "
            "partition at the time in `completed`."
        ),
    )
    MARKER_WITHOUT_DECISION = FindingRule(
        _W,
        Topic.OUTCOME,
        (
            "No captured decision explains a marker. An ABORT may have been written by hand (kafka-transactions.sh abort); no "
            "Kafka tool writes a COMMIT."
        ),
        (
            "if the marker is an ABORT, someone aborted by hand. This is expected after an abort plan; otherwise ask who did it. "
            "If it is a COMMIT, the coordinator's records are missing."
        ),
    )
    MARKER_OF_DEPOSED_COORDINATOR = FindingRule(
        _E,
        Topic.OUTCOME,
        "A marker has an older coordinator epoch than the decision: a deposed coordinator wrote it.",
        advice.TWO_COORDINATORS,
    )
    ABORTED_WHILE_ONGOING = FindingRule(
        _E,
        Topic.OUTCOME,
        (
            "An ABORT marker was written to a partition of a transaction that is still Ongoing. If the transaction commits, its "
            "outcome is split. Stop its application before it commits."
        ),
        (
            "someone aborted one partition of a transaction that is still open. Stop its application before it commits. The "
            "coordinator then aborts the other partitions at the timeout, and the outcome is not split."
        ),
    )
    DUPLICATE_MARKER = FindingRule(
        _I,
        Topic.OUTCOME,
        "A marker was written twice, which happens after a failover of its coordinator. Harmless.",
        "nothing to do.",
    )
    WRITTEN_BEFORE_TRANSACTION = FindingRule(
        _E,
        Topic.OUTCOME,
        (
            "Records of a transaction were written before it began: they arrived too late for the previous transaction, and were "
            "ended with this one."
        ),
        (
            "late records became part of the wrong transaction (KAFKA-14402). Compare them with the source of the data, and "
            "upgrade to transactions v2."
        ),
    )
    UNKNOWN_TOPIC_OR_PARTITION = FindingRule(
        _W,
        Topic.LEFT_BEHIND,
        "A transaction that has not ended lists a partition whose topic no longer exists: its records there are lost.",
        "the topic was deleted while the transaction was open. The transaction ends by itself; the records that it wrote there are "
        "lost.",
    )
    # Of many producers together
    TRANSACTIONAL_IDS_NOT_REUSED = FindingRule(
        _W,
        Topic.LEFT_BEHIND,
        (
            "An application abandons its transactional ids after one use. Coordinators keep each id until it expires. The severity "
            "is INFO while there are few."
        ),
        advice.REUSE_IDS,
    )
    PRODUCER_IDS_NOT_REUSED = FindingRule(
        _W,
        Topic.LEFT_BEHIND,
        (
            "Producers of a partition wrote one batch each and were then abandoned. The broker keeps each producer until it "
            "expires. The severity is INFO while there are few."
        ),
        advice.REUSE_IDS,
    )
    # Between copies and files of one partition
    COPIES_DISAGREE = FindingRule(
        _E,
        Topic.FILES,
        (
            "Copies of a partition have different batches at the same offset below their high watermarks: there was an unclean "
            "election, or the files are from different clusters."
        ),
        (
            "there was an unclean election, or the files are from different clusters. Decide which replica is right before you "
            "rely on any other result for the partition."
        ),
    )
    # The cluster's metadata log
    UNCLEAN_LEADER_ELECTION = FindingRule(
        _W,
        Topic.OUTCOME,
        "A broker became the leader of a partition without being in sync: records, and markers among them, may be lost.",
        (
            "records that were acknowledged may be gone. Look for transactions whose markers are missing, for a disk that still "
            "has the lost offsets, and for `unclean.leader.election.enable`."
        ),
    )
    PRODUCER_ID_NEVER_ALLOCATED = FindingRule(
        _W,
        Topic.BATCHES,
        "The cluster never handed out the producer id: it is beyond every block in the metadata log.",
        "a client made the producer id up, or the records come from another cluster. Find the client that wrote them.",
    )
    CAPTURE_JSON_CONTRADICTED = FindingRule(
        _W,
        Topic.FILES,
        "The notes in capture.json and the cluster's metadata log contradict each other. capture.json is used.",
        "correct capture.json, or leave out what the metadata log contains. Check that both are from one cluster.",
    )
    COPY_OF_DELETED_TOPIC = FindingRule(
        _I,
        Topic.FILES,
        "A copy belongs to a topic that was deleted, perhaps to be created again. It is not judged.",
        "nothing to do, unless you need the records of the deleted topic. A broker that was down during the deletion removes them.",
    )
    ABORT_NOT_INDEXED = FindingRule(
        _E,
        Topic.FILES,
        "An aborted transaction is not in the transaction index: read_committed consumers read its records.",
        advice.REBUILD_THE_INDEX,
    )
    INDEXED_ABORT_NOT_IN_LOG = FindingRule(
        _E,
        Topic.FILES,
        "The transaction index lists an abort whose marker is not in the log: consumers skip records that were not aborted.",
        advice.REBUILD_THE_INDEX,
    )
    LIVE_PRODUCER_DISAGREES = FindingRule(
        _E,
        Topic.FILES,
        "The leader and its log disagree about the open transaction of a producer.",
        advice.CAPTURE_AGAIN,
    )
    LIVE_STABLE_OFFSET_DISAGREES = FindingRule(
        _E,
        Topic.FILES,
        "The leader answered a last stable offset below its high watermark, and the log shows no transaction that was open there.",
        advice.CAPTURE_AGAIN,
    )
    LIVE_STATE_DISAGREES = FindingRule(
        _E,
        Topic.FILES,
        "The coordinator and its log disagree about the state of a transactional id.",
        advice.CAPTURE_AGAIN,
    )
    LIVE_OWNER_UNKNOWN = FindingRule(
        _E,
        Topic.FILES,
        "A coordinator described a transactional id with a producer id that no captured record of the id names.",
        advice.CAPTURE_AGAIN,
    )
    # Forecasts. The rules are in `core.findings.forecasts`; the evidence has the arithmetic, and `expected` the date.
    PRODUCER_EPOCHS_RUN_OUT = FindingRule(
        _I,
        Topic.FORECASTS,
        (
            "The producer id of a transactional id will have used all its epochs, and its coordinator then gives the id a new "
            "producer id. The severity is WARNING in the last week, unless the id gets there every month anyway."
        ),
        (
            "usually nothing: Kafka rotates the producer id by itself. Before the date, upgrade brokers that have KAFKA-20090, "
            "because at the last epoch a transaction may become impossible to fence, and make sure that nothing outside of Kafka "
            "stores the producer id, as a two-phase commit may. If the rate surprises you, look for an application that "
            "initialises its producer again and again. Under transactions v2, every end of a transaction uses an epoch."
        ),
    )
    TRANSACTIONAL_ID_EXPIRES = FindingRule(
        _I,
        Topic.FORECASTS,
        (
            "A transactional id will expire although its producer id has an open transaction: then no coordinator knows who wrote "
            "it. The severity is WARNING in the last two days."
        ),
        (
            "settle the open transaction before the date (`txn-audit explain`). Afterwards its transactional id, and with it the "
            "application, can no longer be found in the coordinators' logs. Keep a copy of the coordinator's partition."
        ),
    )
    PRODUCER_IDS_FILL_MEMORY = FindingRule(
        _I,
        Topic.FORECASTS,
        (
            "The number of producers that a broker keeps in memory grows towards a million, at about 400 bytes each. The severity "
            "is WARNING if that is less than a week away."
        ),
        (
            "find the clients that create a new producer for each piece of work (`PRODUCER_IDS_NOT_REUSED`), and let them reuse "
            "it. Until then, lower `producer.id.expiration.ms`, or give the broker more memory."
        ),
    )
    CLIENT_BEHIND_TRANSACTION_VERSION = FindingRule(
        _I,
        Topic.FORECASTS,
        (
            "Clients of an application still use version 0 or 1 of transactions although the cluster offers version 2: their late "
            "writes can still hang."
        ),
        (
            "upgrade the clients (Kafka's Java client 4.0 or later), and restart producers that were connected before "
            "`transaction.version` was raised. Until then, a late write can hang as before (KAFKA-14402)."
        ),
    )
    LAST_STABLE_OFFSET_STANDS_STILL = FindingRule(
        _I,
        Topic.FORECASTS,
        (
            "The last stable offset of a partition was the same in at least three audits, although no verdict calls the partition "
            "blocked yet. The severity is WARNING from one day on."
        ),
        (
            "find out why the named transaction is open for longer than one night: a prepared two-phase commit, a timeout that is "
            "too long, or a client whose clock is ahead. `read_committed` consumers wait at that offset."
        ),
    )


#: Every finding with its rule.
FINDINGS: Final = {finding: finding.value for finding in Finding}
