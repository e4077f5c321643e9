"""The catalogue of findings: severity, topic and meaning of each, and what to do.

A finding has the name of the error that a broker would have returned, if there is one (Kafka: `Errors`). Reading a log
is a replay: batches that a leader would have refused are accepted, as in replication and recovery, and reported.

docs/rules/reference.md and the findings in docs/runbook.md are rendered from the rows.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class FindingRule:
    severity: Severity
    topic: Topic
    meaning: str
    #: What to do, for the runbook. Findings of a topic with the same advice share an entry.
    advice: str


#: Advice that several findings have in common.
_ACCEPTED_BY_A_LEADER: Final = (
    "a leader accepted a batch that it should have refused. An unclean election or removed records explain this. If"
    " neither happened, keep the segments and report the problem to Apache Kafka with the rows of `findings`."
)
_TWO_COORDINATORS: Final = (
    "two brokers acted as the same coordinator. Look for long pauses or a network partition at that time, and compare"
    " what the two decided about each transaction."
)
_WRITTEN_BY_NO_COORDINATOR: Final = (
    "no coordinator writes such records. Check that the copies are from one cluster and one time. If they are, look for"
    " an unclean election of that `__transaction_state` partition."
)
_CAPTURE_AGAIN: Final = (
    "abort nothing on the strength of this log. Capture again. If the two still disagree, restart or move the leader,"
    " so that it loads its state from the log, and report the problem to Apache Kafka with both captures."
)
_REUSE_IDS: Final = (
    "an application creates a new id for each use. Make it reuse its ids, because brokers keep every id in memory until"
    " it expires."
)
_REBUILD_THE_INDEX: Final = (
    "the index of that segment is wrong. Stop the broker, remove that `.txnindex`, and let it be rebuilt. Until then"
    " consumers may read aborted records or miss committed ones."
)


class Finding(Enum):
    """A finding: its name, and its rule as the value."""

    # A partition's log
    INVALID_PRODUCER_EPOCH = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.BATCHES,
        meaning=(
            "A batch or marker with an older producer epoch follows one with a newer epoch. No correct leader accepts"
            " that."
        ),
        advice=_ACCEPTED_BY_A_LEADER,
    )
    OUT_OF_ORDER_SEQUENCE_NUMBER = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.BATCHES,
        meaning=(
            "The first sequence of a batch does not follow the last sequence of its producer: records are missing or"
            " repeated."
        ),
        advice=_ACCEPTED_BY_A_LEADER,
    )
    INVALID_TXN_STATE = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.BATCHES,
        meaning="A non-transactional batch is inside an open transaction of the same producer.",
        advice=_ACCEPTED_BY_A_LEADER,
    )
    TRANSACTION_COORDINATOR_FENCED = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.OUTCOME,
        meaning=(
            "A marker with an older coordinator epoch follows one with a newer epoch: a deposed coordinator was still"
            " writing."
        ),
        advice=_TWO_COORDINATORS,
    )
    TIMESTAMP_IN_FUTURE = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.BATCHES,
        meaning=(
            "The last write of a producer is stamped later than the instant of the audit: the client's clock is wrong,"
            " and so are ages derived from it."
        ),
        advice=(
            "the client's clock is wrong. Ages derived from it are wrong too, and time-based retention keeps the"
            " segments too long."
        ),
    )
    INVALID_TIMESTAMP = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.BATCHES,
        meaning=(
            "The last write of a producer, or the last record of a transactional id, has a timestamp that is out of"
            " range (before 1970 or after the year 9999; nanoseconds, for example): ages derived from it are unknown."
        ),
        advice=(
            "the client sets its own timestamps in a unit other than milliseconds, or leaves them unset. Correct the"
            " client. Brokers from 4.0 on refuse such records; older brokers refuse them with"
            " `message.timestamp.difference.max.ms`. In a coordinator's record, such a timestamp is damage: compare"
            " another replica."
        ),
    )
    CORRUPT_MESSAGE = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.BATCHES,
        meaning=(
            "The CRC of a batch does not match, so its header cannot be trusted. A verdict depends on the batch, or the"
            " batch is odd."
        ),
        advice=(
            "a batch of an open transaction is damaged on that disk. Copy another replica; `quarantine` has the"
            " position."
        ),
    )
    # The coordinator's log
    INVALID_TRANSACTION_TIMEOUT = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.RECORDS,
        meaning=(
            "A transactional id has a timeout that brokers refuse: 0, negative, or above transaction.max.timeout.ms."
        ),
        advice=(
            "brokers refuse such a timeout. Check `transaction_max_timeout_ms` in capture.json: the limit may have been"
            " lowered."
        ),
    )
    ILLEGAL_TRANSITION = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.RECORDS,
        meaning=(
            "A record of a transactional id has a state, a producer id or a producer epoch that no coordinator writes"
            " after the record before it."
        ),
        advice=_WRITTEN_BY_NO_COORDINATOR,
    )
    COORDINATOR_EPOCH_WENT_BACK = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.RECORDS,
        meaning=(
            "The leader epoch of a coordinator partition decreased between two records: two coordinators wrote to it."
        ),
        advice=_WRITTEN_BY_NO_COORDINATOR,
    )
    EPOCH_BEYOND_EXHAUSTION = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.RECORDS,
        meaning=(
            "A transactional id is Empty or Ongoing at an epoch that no client may have: it cannot be fenced"
            " (KAFKA-20090)."
        ),
        advice=(
            "the id can no longer be fenced (KAFKA-20090). Stop its application, then let the id expire or give the"
            " application another id."
        ),
    )
    # Between the logs
    PRODUCER_ID_OWNED_TWICE = FindingRule(
        severity=Severity.CRITICAL,
        topic=Topic.RECORDS,
        meaning="Two transactional ids claim the same producer id: the logs are corrupt, or from different clusters.",
        advice=(
            "check that the inputs are from one cluster. If they are, a block of producer ids was handed out twice:"
            " stop both applications before they fence each other's data."
        ),
    )
    WRONG_COORDINATOR_PARTITION = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.RECORDS,
        meaning="A transactional id is in a coordinator partition other than the one that its hash selects.",
        advice=(
            "someone added partitions to `__transaction_state` while it was in use, so its ids have two coordinators."
            " No abort is safe until that is undone."
        ),
    )
    SPLIT_OUTCOME = FindingRule(
        severity=Severity.CRITICAL,
        topic=Topic.OUTCOME,
        meaning=(
            "A marker contradicts the coordinator's decision: the transaction is committed in one place and aborted in"
            " another."
        ),
        advice=(
            "the transaction is committed in one place and aborted in another. Stop the consumers of the named"
            " partitions, compare the partitions with the decision in `transactions`, and repair the data with the"
            " application's own tools. If an abort by hand caused the split, find out who ran it."
        ),
    )
    MARKER_MISSING = FindingRule(
        severity=Severity.CRITICAL,
        topic=Topic.OUTCOME,
        meaning=(
            "A completed transaction has no marker on one of its partitions, although the log of that partition extends"
            " from before the transaction to after it. The severity is WARNING if the transaction was aborted, because"
            " an abort by hand repairs that."
        ),
        advice=(
            "the coordinator considers the transaction complete, but a partition never got its marker. The records"
            " there are read as part of the producer's next transaction, or block consumers as `HANGING`. Check for an"
            " unclean election of that partition at the time in `completed`."
        ),
    )
    COMPLETION_OVERDUE = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.OUTCOME,
        meaning=(
            "A transaction was decided, every captured partition has its marker, and its coordinator has not completed"
            " it for longer than --stuck-after: its transactional id cannot begin another one."
        ),
        advice=(
            "the coordinator waits for the marker of a partition that was not captured or is gone, or has given up."
            " Move the leader of its `__transaction_state` partition, or restart that broker: the next coordinator"
            " sends the markers again (KAFKA-19999)."
        ),
    )
    MARKER_WITHOUT_DECISION = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.OUTCOME,
        meaning=(
            "No captured decision explains a marker. An ABORT may have been written by hand (kafka-transactions.sh"
            " abort). No Kafka tool writes a COMMIT, so its coordinator has lost the decision: the severity is ERROR."
        ),
        advice=(
            "if the marker is an ABORT, someone aborted by hand. This is expected after an abort plan; otherwise ask"
            " who did it. If it is a COMMIT, the coordinator's records are missing."
        ),
    )
    MARKER_OF_DEPOSED_COORDINATOR = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.OUTCOME,
        meaning="A marker has an older coordinator epoch than the decision: a deposed coordinator wrote it.",
        advice=_TWO_COORDINATORS,
    )
    ABORTED_WHILE_ONGOING = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.OUTCOME,
        meaning=(
            "An ABORT marker was written to a partition of a transaction that is still Ongoing. If the transaction"
            " commits, its outcome is split. Stop its application before it commits."
        ),
        advice=(
            "someone aborted one partition of a transaction that is still open. Stop its application before it commits."
            " The coordinator then aborts the other partitions at the timeout, and the outcome is not split."
        ),
    )
    WRITTEN_BEFORE_TRANSACTION = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.OUTCOME,
        meaning=(
            "Records were written before the transaction that ended them: they came too late for the previous one, or"
            " its marker was lost."
        ),
        advice=(
            "records became part of the wrong transaction (KAFKA-14402; or, with UNCLEAN_LEADER_ELECTION, a leader lost"
            " a marker). Compare them with the source of the data, and upgrade to transactions v2."
        ),
    )
    UNKNOWN_TOPIC_OR_PARTITION = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.LEFT_BEHIND,
        meaning=(
            "A transaction that has not ended lists a partition whose topic no longer exists: its records there are"
            " lost."
        ),
        advice=(
            "the topic was deleted while the transaction was open. The transaction ends by itself; the records that it"
            " wrote there are lost."
        ),
    )
    # Of many producers together
    TRANSACTIONAL_IDS_NOT_REUSED = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.LEFT_BEHIND,
        meaning=(
            "An application abandons its transactional ids after one use. Coordinators keep each id until it expires."
            " The severity is INFO while there are few."
        ),
        advice=_REUSE_IDS,
    )
    PRODUCER_IDS_NOT_REUSED = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.LEFT_BEHIND,
        meaning=(
            "Producers of a partition wrote one batch each and were then abandoned. The broker keeps each producer"
            " until it expires. The severity is INFO while there are few."
        ),
        advice=_REUSE_IDS,
    )
    # Between copies and files of one partition
    COPIES_DISAGREE = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "Copies of a partition have different batches at the same offset below their high watermarks: there was an"
            " unclean election, or the files are from different clusters."
        ),
        advice=(
            "there was an unclean election, or the files are from different clusters. Decide which replica is right"
            " before you rely on any other result for the partition."
        ),
    )
    # The cluster's metadata log
    UNCLEAN_LEADER_ELECTION = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.OUTCOME,
        meaning=(
            "A broker became the leader of a partition without being in sync: records, and markers among them, may be"
            " lost."
        ),
        advice=(
            "records that were acknowledged may be gone. Look for transactions whose markers are missing, for a disk"
            " that still has the lost offsets, and for `unclean.leader.election.enable`."
        ),
    )
    PRODUCER_ID_NEVER_ALLOCATED = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.BATCHES,
        meaning="The cluster never handed out the producer id: it is beyond every block in the metadata log.",
        advice=(
            "a client made the producer id up, or the records were copied from another cluster, which decides about"
            " them: ask there, and abort nothing here. Find the client that wrote them."
        ),
    )
    CAPTURE_JSON_CONTRADICTED = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.FILES,
        meaning=(
            "The notes in capture.json and the cluster's metadata log contradict each other, and capture.json is used;"
            " or a copy refutes the noted leader, which is then not known."
        ),
        advice=(
            "correct capture.json, or leave out what the metadata log contains. Check that both are from one cluster."
        ),
    )
    INCONSISTENT_BROKER_ID = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.FILES,
        meaning=(
            "A folder has the number of one broker, and its `meta.properties` that of another, whose copies these are:"
            " its disk moved, or somebody copied it there. Kafka up to 3.6: `InconsistentBrokerIdException`."
        ),
        advice="copy each broker into a folder of its own number; if the disk moved, find out what it has missed.",
    )
    COPY_OF_DELETED_TOPIC = FindingRule(
        severity=Severity.INFO,
        topic=Topic.FILES,
        meaning="A copy belongs to a topic that was deleted, perhaps to be created again. It is not judged.",
        advice=(
            "nothing to do, unless you need the records of the deleted topic. A broker that was down during the"
            " deletion removes them."
        ),
    )
    PRODUCER_SNAPSHOT_DISAGREES = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "A producer snapshot of a copy has a producer with nothing open where the log of that copy shows its"
            " transaction open: the marker was there when the broker took the snapshot, or the two are of different"
            " logs."
        ),
        advice=_CAPTURE_AGAIN,
    )
    OPEN_ON_REPLICA = FindingRule(
        severity=Severity.WARNING,
        topic=Topic.FILES,
        meaning=(
            "A replica has a transaction open that the log of the leader does not show: retention or compaction removed"
            " its records there, or its marker before the replica read it. `find-hanging --broker-id` of its broker"
            " lists it. If that broker becomes the leader, read_committed consumers stop there."
        ),
        advice=(
            "move the replica to another broker and back (kafka-reassign-partitions.sh): a new replica builds its state"
            " from the log of the leader."
        ),
    )
    TRANSACTION_INDEX_DISAGREES = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "A log and its transaction index disagree about an abort: read_committed consumers read records that were"
            " aborted, or skip records that were not."
        ),
        advice=_REBUILD_THE_INDEX,
    )
    LIVE_ANSWER_DISAGREES = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "A broker and its log disagree: a leader about the open transaction of a producer, or a coordinator about"
            " the state of a transactional id."
        ),
        advice=_CAPTURE_AGAIN,
    )
    LIVE_STABLE_OFFSET_DISAGREES = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "The leader answered a last stable offset below its high watermark, and the log shows no transaction that"
            " was open there."
        ),
        advice=_CAPTURE_AGAIN,
    )
    LIVE_OWNER_UNKNOWN = FindingRule(
        severity=Severity.ERROR,
        topic=Topic.FILES,
        meaning=(
            "A coordinator described a transactional id with a producer id that no captured record of the id names."
        ),
        advice=_CAPTURE_AGAIN,
    )


#: Every finding with its rule.
FINDINGS: Final = {finding: finding.value for finding in Finding}
