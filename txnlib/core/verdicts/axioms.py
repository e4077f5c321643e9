"""What holds in every real history: the premises from which `world` concludes.

Each has a name, which its users cite, a sentence, and its source in Kafka. What refutes a proof, an age, or a match
follows from these. A choice (what is hidden, what is lost) needs a fact of the capture that allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Axiom(StrEnum):
    ORDER = "ORDER"
    CLOCKS = "CLOCKS"
    EVERY_MARKER = "EVERY_MARKER"
    ONE_DECISION = "ONE_DECISION"
    ONE_AT_A_TIME = "ONE_AT_A_TIME"
    COMPACTION = "COMPACTION"
    LOSS = "LOSS"
    EPOCHS = "EPOCHS"
    REGISTERED = "REGISTERED"
    ORIGINS = "ORIGINS"
    CONTENT = "CONTENT"
    FILES = "FILES"
    CARRIED = "CARRIED"


@dataclass(frozen=True, slots=True)
class Premise:
    """What an axiom says, where Kafka says so, and what a world makes of it."""

    says: str
    source: str
    gives: str


AXIOMS: Final[Mapping[Axiom, Premise]] = {
    Axiom.ORDER: Premise(
        "The records of a log were written in the order of their offsets, by leaders whose epochs never fall.",
        "UnifiedLog.append, LeaderEpochFileCache.assign",
        "the order of the instants of a log",
    ),
    Axiom.CLOCKS: Premise(
        "A decision and its marker bound the difference of two clocks: the marker is written after the decision, and"
        " before its completion. What all pairs of two clocks have in common is their offset. Where that is nothing,"
        " they moved, and what they stamp is off by as much. Two that were never compared differ by five minutes, or"
        " as far as anything shows. Stamps that contradict each other prove nothing.",
        "TransactionMarkerRequestCompletionHandler.onComplete",
        "bounds between clocks, and between an instant and the clock that stamped it",
    ),
    Axiom.EVERY_MARKER: Premise(
        "A decision that is complete has written a marker to each partition that it lists; from 4.2 on, but for those"
        " without a leader.",
        "TransactionMarkerChannelManager.maybeWriteTxnCompletion",
        "a complete decision has a marker here, unless it was deleted or lost",
    ),
    Axiom.ONE_DECISION: Premise(
        "A marker carries out one decision, and so does its repeat. Only an ABORT may be one by hand. A COMMIT that"
        " no record explains is a decision that its coordinator has lost, and where one was lost, others may be.",
        "TransactionCoordinator.endTransaction, Admin.abortTransaction",
        "the choices of a marker",
    ),
    Axiom.ONE_AT_A_TIME: Premise(
        "Transactions of a producer id do not overlap: none begins before the one before is complete.",
        "TransactionCoordinator.handleAddPartitionsToTransaction (CONCURRENT_TRANSACTIONS)",
        "the order of decisions, and that markers have the same one",
    ),
    Axiom.COMPACTION: Premise(
        "Compaction removes a record only if a newer one of its key is in the log, and nothing from the end of the"
        " hole on. So it never removes the newest record of an id.",
        "Cleaner.shouldRetainRecord",
        "hidden decisions that were completed, each in a hole",
    ),
    Axiom.LOSS: Premise(
        "What was acknowledged vanishes only by an election whose leader was not in sync, by a leader that crashed as"
        " the only one in sync, or lost its disk, with a topic that was made again, or with a truncated tail. It is the"
        " end of a log that vanishes, and nothing in front of that. Of a coordinator, that may be decisions that were"
        " prepared and never completed.",
        "ReplicationControlManager, PartitionRegistration, LeaderRecoveryState",
        "lost markers; hidden decisions that need not have a marker",
    ),
    Axiom.EPOCHS: Premise(
        "Epochs of an id rise by one, and each is written before a client has it. An end under transactions v2 has"
        " the epoch behind that of its records.",
        "TransactionMetadata.prepareIncrementProducerEpoch, prepareAbortOrCommit",
        "which decision can be of the open records; that the log lacks an epoch",
    ),
    Axiom.REGISTERED: Premise(
        "Under transactions v2, no record is written that is not registered. What counts is the level of that time.",
        "KIP-890, AddPartitionsToTxnManager",
        "open records below their coordinator's epoch have lost their marker",
    ),
    Axiom.ORIGINS: Premise(
        "Nothing of a producer id precedes its assignment. A log that is younger than the batch does not tell what"
        " was decided before. An id expires only after transactional.id.expiration.ms.",
        "ProducerIdManager, TransactionStateManager.removeExpiredTransactionalIds",
        "the oldest instant of the producer id; hidden decisions of an earlier topic",
    ),
    Axiom.CONTENT: Premise(
        "Each coordinator epoch that a marker of any id of a coordinator partition names is a leader epoch of its"
        " log. A log without a hole has none in its content: a Prepare keeps its start, and what was begun was ended.",
        "TransactionStateManager.appendTransactionToLog, TransactionMetadata.validPreviousStates",
        "hidden decisions that the coordinator lost",
    ),
    Axiom.FILES: Premise(
        "Every file of a topic id speaks: segments of any copy, snapshots, transaction indices, checkpoints, and an"
        " empty control batch, which was a marker.",
        "ProducerStateManager, TransactionIndex, LeaderEpochCheckpointFile",
        "the first statement of the proof (`abort_proof`)",
    ),
    Axiom.CARRIED: Premise(
        "What an earlier audit read of the same topic id stays an event, also where compaction has removed it since."
        " Where a newer leader epoch begins below what was committed then, the log has lost the rest. Proofs are made"
        " again from all events.",
        "the column `carried` of open_transactions",
        "decisions, holes that are filled, and when a marker was not yet here",
    ),
}
