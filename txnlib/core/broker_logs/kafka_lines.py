"""Lines that Kafka logs, and those of each cause and finding.

Controllers with KRaft are claimed from 3.3 on, the first version with KRaft in production; those with ZooKeeper up to
3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from txnlib.core.broker_logs.log_line import NEWEST, BrokerLogs, Form, Level, LogFile, LogLine, Version, Writer
from txnlib.core.finding_catalogue import FINDINGS, Finding
from txnlib.core.verdicts.cause import CauseName

#: A name with its writer, its file if that is not server.log, and what the line shows. Below it, each text, and below
#: that its versions (`2.8-` is up to the newest), level, class and method, and after `by` what logs it if it is thrown.
#: `o.a.k.` is `org.apache.kafka.`. What a leader refuses is thrown, and is below "Error processing append operation on
#: partition". (Since 3.5, the second text of REFUSED_SEQUENCE has no space before "at".)
_TABLE: Final = """\
REFUSED_EPOCH LEADER: the leader refused a batch or marker, because the partition has seen a newer producer epoch
  InvalidProducerEpochException: Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is smaller than \
the last seen epoch
    2.8-3.4 ERROR kafka.log.ProducerAppendInfo.checkProducerEpoch by kafka.server.ReplicaManager.appendToLocalLog
    3.5-3.8 ERROR o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch by \
kafka.server.ReplicaManager.appendToLocalLog
    3.9-4.1 INFO o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch by kafka.server.ReplicaManager.appendToLocalLog
  InvalidProducerEpochException: Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is … the last \
seen epoch
    4.2- INFO o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch by kafka.server.ReplicaManager.appendToLocalLog
COPIED_EPOCH FOLLOWER: a follower copied a batch or marker with an older producer epoch, so a leader accepted it
  Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is smaller than the last seen epoch
    2.8-3.4 WARN kafka.log.ProducerAppendInfo.checkProducerEpoch
    3.5-4.1 WARN o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch
  Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is … the last seen epoch
    4.2- WARN o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch
REPEATED_MARKER LEADER: the leader accepted a repeated marker of transactions v2
  Idempotent transaction marker retry detected for producer {producer_id} epoch
    4.2- INFO o.a.k.storage.internals.log.ProducerAppendInfo.checkProducerEpoch
REFUSED_SEQUENCE LEADER: the leader refused a batch whose sequence does not follow the producer's last one
  OutOfOrderSequenceException: Out of order sequence number for producer {producer_id} at offset … in partition \
{topic}-{partition}:
    2.8-3.4 ERROR kafka.log.ProducerAppendInfo.checkSequence by kafka.server.ReplicaManager.appendToLocalLog
    3.5- ERROR o.a.k.storage.internals.log.ProducerAppendInfo.checkSequence by kafka.server.ReplicaManager.appendToLocalLog
  OutOfOrderSequenceException: Invalid sequence number for new epoch of producer {producer_id}…at offset … in partition \
{topic}-{partition}:
    2.8-3.4 ERROR kafka.log.ProducerAppendInfo.checkSequence by kafka.server.ReplicaManager.appendToLocalLog
    3.5- ERROR o.a.k.storage.internals.log.ProducerAppendInfo.checkSequence by kafka.server.ReplicaManager.appendToLocalLog
  OutOfOrderSequenceException: Invalid sequence number for producer {producer_id} at offset … in partition {topic}-{partition}:
    4.1- ERROR o.a.k.storage.internals.log.ProducerAppendInfo.checkSequence by kafka.server.ReplicaManager.appendToLocalLog
REFUSED_NON_TRANSACTIONAL LEADER: the leader refused a non-transactional batch inside an open transaction
  InvalidTxnStateException: Expected transactional write from producer {producer_id} at offset … in partition {topic}-{partition}
    2.8-3.4 ERROR kafka.log.ProducerAppendInfo.appendDataBatch by kafka.server.ReplicaManager.appendToLocalLog
    3.5- ERROR o.a.k.storage.internals.log.ProducerAppendInfo.appendDataBatch by kafka.server.ReplicaManager.appendToLocalLog
FETCHER_FAILED FOLLOWER: a follower could not append what its leader accepted, and stopped copying the partition
  Unexpected error occurred while processing data for partition {topic}-{partition} at offset
    2.8- ERROR kafka.server.AbstractFetcherThread.processFetchRequest
FETCHED_CORRUPT FOLLOWER: a follower received a damaged batch from its leader
  Found invalid messages during fetch for partition {topic}-{partition} offset
    2.8- ERROR kafka.server.AbstractFetcherThread.processFetchRequest
REFUSED_COORDINATOR_EPOCH LEADER: the leader refused the marker of a deposed coordinator
  TransactionCoordinatorFencedException: Invalid coordinator epoch for producerId {producer_id} at offset … in partition \
{topic}-{partition}:
    2.8-3.4 ERROR kafka.log.ProducerAppendInfo.checkCoordinatorEpoch by kafka.server.ReplicaManager.appendToLocalLog
    3.5- ERROR o.a.k.storage.internals.log.ProducerAppendInfo.checkCoordinatorEpoch by \
kafka.server.ReplicaManager.appendToLocalLog
COPIED_COORDINATOR_EPOCH FOLLOWER: a follower copied the marker of a deposed coordinator, so a leader accepted it
  Detected invalid coordinator epoch for producerId {producer_id} at offset … in partition {topic}-{partition}:
    2.8-3.4 INFO kafka.log.ProducerAppendInfo.checkCoordinatorEpoch
    3.5- INFO o.a.k.storage.internals.log.ProducerAppendInfo.checkCoordinatorEpoch
REFUSED_APPEND LEADER: the leader refused an append; the exception is in the next line
  Error processing append operation on partition {topic}-{partition}
    2.8-4.0 ERROR kafka.server.ReplicaManager.appendToLocalLog
  Error processing append operation on partition …:{topic}-{partition}
    4.1- ERROR kafka.server.ReplicaManager.appendToLocalLog
REFUSED_TIMESTAMP LEADER: the leader refused records whose timestamps are out of range
  InvalidTimestampException: One or more records have been rejected due to invalid timestamp
    2.8-3.4 ERROR kafka.log.LogValidator.processRecordErrors by kafka.server.ReplicaManager.appendToLocalLog
    3.5- ERROR o.a.k.storage.internals.log.LogValidator.processRecordErrors by kafka.server.ReplicaManager.appendToLocalLog
VERIFICATION_SKIPPED LEADER: the leader appended without verification, because the coordinator is older than 3.6
  AddPartitionsToTxnRequest failed for node … with invalid version exception.
    3.6-4.0 WARN kafka.server.AddPartitionsToTxnManager.onComplete
    4.1- WARN o.a.k.server.transaction.AddPartitionsToTxnManager.onComplete
PRODUCER_RETRIED PRODUCER/APPLICATION: the producer sent a batch again, so it may arrive late
  Got error produce response with correlation id … on topic-partition {topic}-{partition}, retrying
    2.8- WARN o.a.k.clients.producer.internals.Sender.completeBatch
MARKER_REFUSED_EPOCH COORDINATOR: the leader refused the marker for its producer epoch, and the coordinator gave up
  Sending {transactional_id}'s transaction marker for partition {topic}-{partition} has permanently failed with error \
…InvalidProducerEpochException
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler.onComplete
MARKER_REFUSED_COORDINATOR COORDINATOR: the leader refused the marker for its coordinator epoch, and the coordinator gave up
  Sending {transactional_id}'s transaction marker for partition {topic}-{partition} has permanently failed with error \
…TransactionCoordinatorFencedException
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler.onComplete
MARKER_RETRIED COORDINATOR: the leader could not write the marker, and the coordinator sends it again
  Sending {transactional_id}'s transaction marker for partition {topic}-{partition} has failed with error …, retrying with \
current coordinator epoch
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler.onComplete
MARKER_SKIPPED COORDINATOR: the coordinator found no leader of the partition, and completed the transaction without its marker
  Couldn't find leader endpoint for partitions …{topic}-{partition}… while trying to send transaction markers for \
{transactional_id}, these partitions are likely deleted already
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue
MARKERS_CANCELLED COORDINATOR: the coordinator moved while it was sending markers; its successor sends them again
  Transaction coordinator epoch for {transactional_id} has changed from … to …; cancel sending transaction markers
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler.onComplete
NO_LONGER_COORDINATOR COORDINATOR: the broker was deposed while it was sending markers
  I am no longer the coordinator for {transactional_id}; cancel sending transaction markers
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler.onComplete
COMPLETION_CANCELLED COORDINATOR: the coordinator did not complete the transaction, because its state had changed meanwhile
  The cached metadata …transactionalId={transactional_id}, … after completed sending the markers with coordinator epoch
    2.8- INFO kafka.coordinator.transaction.TransactionMarkerChannelManager.writeTxnCompletion
DEAD_QUEUE COORDINATOR: the coordinator put a marker into a queue that it had removed
  Added …{transactional_id}… to dead queue for txn partition {coordinator_partition} to destination broker
    3.8- WARN kafka.coordinator.transaction.TxnMarkerQueue.addMarkers
MARKERS_AFTER_LOADING COORDINATOR: a new coordinator sent the markers again
  Sending txn markers for …{transactional_id}… after loading partition {coordinator_partition}
    3.8- INFO kafka.coordinator.transaction.TransactionStateManager.loadTransactionsForTxnTopicPartition
UNREACHABLE COORDINATOR: the coordinator cannot connect to a leader; node is the leader's broker id
  [TransactionCoordinator id=…] Connection to node … could not be established. Broker may not be available.
    2.8-3.6 WARN o.a.k.clients.NetworkClient.processDisconnection
  [TransactionCoordinator id=…] Connection to node … could not be established. Node may not be available.
    3.7- WARN o.a.k.clients.NetworkClient.processDisconnection
ROLLED_BACK COORDINATOR: the coordinator aborted the transaction at its timeout
  Completed rollback of ongoing transaction for transactionalId {transactional_id} due to timeout
    2.8- INFO kafka.coordinator.transaction.TransactionCoordinator.onEndTransactionComplete
ROLLBACK_FAILED COORDINATOR: the coordinator could not abort the transaction at its timeout
  Rollback of ongoing transaction for transactionalId {transactional_id} failed due to error
    2.8- WARN kafka.coordinator.transaction.TransactionCoordinator.onEndTransactionComplete
SCAN_FAILED COORDINATOR: the scan for expired transactions failed
  Uncaught exception in scheduled task 'transaction-abort'
    2.8-3.4 ERROR kafka.utils.KafkaScheduler.schedule
    3.5- ERROR o.a.k.server.util.KafkaScheduler.schedule
EPOCH_EXHAUSTED COORDINATOR: the coordinator cannot raise the epoch any more
  IllegalStateException: Cannot fence producer with epoch equal to Short.MaxValue since this would overflow
    2.8-3.4 ERROR kafka.coordinator.transaction.TransactionMetadata.prepareFenceProducerEpoch by \
kafka.utils.KafkaScheduler.schedule
    3.5-4.1 ERROR kafka.coordinator.transaction.TransactionMetadata.prepareFenceProducerEpoch by \
o.a.k.server.util.KafkaScheduler.schedule
    4.2 ERROR o.a.k.coordinator.transaction.TransactionMetadata.prepareFenceProducerEpoch by \
o.a.k.server.util.KafkaScheduler.schedule
  Fencing producer {transactional_id} {producer_id} with epoch equal to Short.MaxValue
    4.3 ERROR o.a.k.coordinator.transaction.TransactionMetadata.prepareFenceProducerEpoch
  Aborting producer {transactional_id} {producer_id} with epoch equal to Short.MaxValue
    4.3 ERROR o.a.k.coordinator.transaction.TransactionMetadata.prepareAbortOrCommit
INITIALIZED COORDINATOR: an application initialised the id, with the producer id and epoch that it got
  Initialized transactionalId {transactional_id} with producerId … and producer epoch
    2.8- INFO kafka.coordinator.transaction.TransactionCoordinator.handleInitProducerId
GIVEN_TO COORDINATOR: a coordinator gave the producer id to an id; search all coordinators
  Initialized transactionalId … with producerId {producer_id} and producer epoch
    2.8- INFO kafka.coordinator.transaction.TransactionCoordinator.handleInitProducerId
APPEND_FAILED COORDINATOR: the coordinator rolled a state back in memory, because its append failed or timed out
  TransactionalId {transactional_id} append transaction log for … transition failed due to …, resetting pending state from
    2.8- INFO kafka.coordinator.transaction.TransactionStateManager.appendTransactionToLog
FENCE_FAILED COORDINATOR: the coordinator could not write the epoch with which it fences a producer
  The coordinator failed to write an epoch fence transition for producer {transactional_id} to the transaction log with error
    2.8- WARN kafka.coordinator.transaction.TransactionCoordinator.endTransaction
WRONG_RESULT COORDINATOR: the application asked for an end that contradicts the state of its id
  TransactionalId: {transactional_id}'s state is …, but received transaction marker result to send:
    2.8-3.9 DEBUG kafka.coordinator.transaction.TransactionCoordinator.logInvalidStateTransitionAndReturnError
    4.0- WARN kafka.coordinator.transaction.TransactionCoordinator.logInvalidStateTransitionAndReturnError
ILLEGAL_STEP COORDINATOR: the coordinator refused to take an illegal step
  TransactionMetadata(transactionalId={transactional_id}, …'s transition to … failed: this should not happen
    2.8-4.1 ERROR kafka.coordinator.transaction.TransactionMetadata.throwStateTransitionFailure
    4.2- ERROR o.a.k.coordinator.transaction.TransactionMetadata.throwStateTransitionFailure
ELECTED COORDINATOR: the broker became the coordinator
  Elected as the txn coordinator for partition {coordinator_partition} at epoch
    2.8- INFO kafka.coordinator.transaction.TransactionCoordinator.onElection
RESIGNED COORDINATOR: the broker stopped being the coordinator
  Resigned as the txn coordinator for partition {coordinator_partition} at epoch
    2.8- INFO kafka.coordinator.transaction.TransactionCoordinator.onResignation
LOADED COORDINATOR: the coordinator loaded its log; the number of ids fell if records were lost
  Finished loading … transaction metadata from __transaction_state-{coordinator_partition} in
    2.8- INFO kafka.coordinator.transaction.TransactionStateManager.loadTransactionsForTxnTopicPartition
LOADING_FAILED COORDINATOR: the coordinator could not load its log
  Error loading transactions from transaction log __transaction_state-{coordinator_partition}
    2.8- ERROR kafka.coordinator.transaction.TransactionStateManager.loadTransactionMetadata
NOTHING_TO_LOAD COORDINATOR: the coordinator found no log to load
  Attempted to load transaction metadata from __transaction_state-{coordinator_partition}, but found no log
    2.8- WARN kafka.coordinator.transaction.TransactionStateManager.loadTransactionMetadata
PARTITIONS_ADDED COORDINATOR: a coordinator noticed that partitions were added to __transaction_state
  KafkaException: Transaction topic number of partitions has changed from
    2.8-3.4 ERROR kafka.coordinator.transaction.TransactionStateManager.validateTransactionTopicPartitionCountIsStable by \
kafka.utils.KafkaScheduler.schedule
    3.5- ERROR kafka.coordinator.transaction.TransactionStateManager.validateTransactionTopicPartitionCountIsStable by \
o.a.k.server.util.KafkaScheduler.schedule
UNCLEAN_KRAFT CONTROLLER/CONTROLLER: an unclean election (KRaft); the line has the id of the topic, not its name
  Setting new leader for topicId …, partition {partition} to … using an unclean election
    3.3-3.5 DEBUG o.a.k.controller.PartitionChangeBuilder.tryElection
    3.6- INFO o.a.k.controller.PartitionChangeBuilder.tryElection
UNCLEAN_TRIGGERED CONTROLLER/CONTROLLER: an unclean election of a partition without leader (KRaft)
  Triggering unclean leader election for offline partition {topic}-{partition}.
    3.9 ERROR o.a.k.controller.ReplicationControlManager.maybeTriggerUncleanLeaderElectionForLeaderlessPartitions
    4.0- INFO o.a.k.controller.ReplicationControlManager.maybeTriggerUncleanLeaderElectionForLeaderlessPartitions
ELECTED_FROM_OFFLINE CONTROLLER/STATE_CHANGE: a partition without leader got one (ZooKeeper); unclean if the new leader was not \
in the in-sync replicas of the line before
  Changed partition {topic}-{partition} from OfflinePartition to OnlinePartition with state
    2.8-3.9 INFO kafka.controller.ZkPartitionStateMachine.doHandleStateChanges
NOT_ELECTED CONTROLLER/STATE_CHANGE: the controller found no leader (ZooKeeper)
  failed to change state for partition {topic}-{partition} from … to OnlinePartition
    2.8-3.9 ERROR kafka.controller.ZkPartitionStateMachine.logFailedStateChange
TRUNCATED REPLICA: a replica removed records that had been acknowledged
  Truncating {topic}-{partition} to offset … below high watermark
    2.8-4.1 WARN kafka.server.ReplicaFetcherThread.truncate
    4.2- WARN o.a.k.storage.internals.log.UnifiedLog.truncateTo
WITHOUT_LEADER REPLICA/STATE_CHANGE: a replica learned that the partition has no leader
  Follower {topic}-{partition} starts at leader epoch … Current leader is -1.
    3.3- INFO kafka.cluster.Partition.makeFollower
FENCED CONTROLLER/CONTROLLER: the controller fenced a broker that sent no heartbeats (KRaft)
  Fencing broker … because its session has timed out.
    3.3- INFO o.a.k.controller.ReplicationControlManager.maybeFenceOneStaleBroker
TRANSACTION_VERSION CONTROLLER/CONTROLLER: transaction.version changed
  Replayed a FeatureLevelRecord setting feature transaction.version to
    3.6- INFO o.a.k.controller.FeatureControlManager.replay
  Replayed a FeatureLevelRecord removing feature transaction.version
    3.6- INFO o.a.k.controller.FeatureControlManager.replay
TOPIC_REMOVED_KRAFT CONTROLLER/CONTROLLER: the topic was deleted (KRaft)
  Removed topic {topic} with ID
    3.3-3.5 INFO o.a.k.controller.ReplicationControlManager.replay
  Replayed RemoveTopicRecord for topic {topic} with ID
    3.6- INFO o.a.k.controller.ReplicationControlManager.replay
TOPIC_REMOVED_ZOOKEEPER CONTROLLER/CONTROLLER: the topic was deleted (ZooKeeper)
  Deletion of topic {topic} successfully completed
    2.8-3.9 INFO kafka.controller.TopicDeletionManager.resumeDeletions
LOG_DELETED REPLICA: a replica of the partition was deleted
  Log for partition {topic}-{partition} is renamed to … and is scheduled for deletion
    2.8- INFO kafka.log.LogManager.asyncDelete
LOG_CREATED REPLICA: a replica of the partition was created empty
  Created log for partition {topic}-{partition} in
    2.8- INFO kafka.log.LogManager.getOrCreateLog
LOG_STRAY REPLICA: a broker found a replica that is not assigned to it
  Log for partition {topic}-{partition} is marked as stray and renamed to
    3.6- WARN kafka.log.LogManager.asyncDelete
PRODUCER_IDS_KRAFT CONTROLLER/CONTROLLER: the controller handed out a block of producer ids (KRaft); nextProducerId is the \
first id after it
  Replaying ProducerIdsRecord
    3.6- INFO o.a.k.controller.ProducerIdControlManager.replay
PRODUCER_IDS_ZOOKEEPER COORDINATOR: a broker took a block of producer ids (ZooKeeper); search all brokers
  Acquired new producerId block … by writing to Zk with path version
    2.8 INFO kafka.coordinator.transaction.ProducerIdManager.getNewProducerIdBlock
    3.0-3.9 INFO kafka.coordinator.transaction.ZkProducerIdManager.getNewProducerIdBlock
PRODUCER_IDS_WRONG COORDINATOR: a broker was given a block of producer ids that is not above its own
  Producer ID block is not monotonic with current block: current=
    3.6-3.9 ERROR kafka.coordinator.transaction.RPCProducerIdManager.handleAllocateProducerIdsResponse
    4.0- ERROR o.a.k.coordinator.transaction.RPCProducerIdManager.handleAllocateProducerIdsResponse
RECOVERY_TRUNCATED REPLICA: a broker removed damaged records when it started
  partition={topic}-{partition}, dir=…] Corruption found in segment …, truncating to offset
    2.8 WARN kafka.log.Log.recoverLog
    3.0-3.9 WARN kafka.log.LogLoader.recoverLog
    4.0- WARN o.a.k.storage.internals.log.LogLoader.recoverLog
INDEX_REBUILT REPLICA: a broker rebuilt the indexes of a segment when it started
  Found a corrupted index file corresponding to log file …/{topic}-{partition}/… due to
    2.8 WARN kafka.log.Log.loadSegmentFiles
    3.0-3.9 WARN kafka.log.LogLoader.loadSegmentFiles
    4.0- WARN o.a.k.storage.internals.log.LogLoader.loadSegmentFiles
"""

_HEAD: Final = re.compile(r"(\w+) ([A-Z_]+)(?:/([A-Z_]+))?: (.+)")
_SOURCE: Final = re.compile(r" {4}(\d\.\d)(-?)(\d\.\d)? ([A-Z]+) (\S+)(?: by (\S+))?")


def _read(table: str) -> dict[str, LogLine]:
    lines: dict[str, LogLine] = {}
    name, text = "", ""
    for row in table.replace("o.a.k.", "org.apache.kafka.").splitlines():
        if head := _HEAD.fullmatch(row):
            name, writer, file, shows = head.groups()
            lines[name] = LogLine(shows, Writer[writer], LogFile[file or "SERVER"], ())
        elif source := _SOURCE.fullmatch(row):
            first, dash, last, level, method, logged_by = source.groups()
            until = _version(last) if last else NEWEST if dash else _version(first)
            form = Form(text, method, Level[level], _version(first), until, logged_by)
            lines[name] = replace(lines[name], forms=(*lines[name].forms, form))
        else:
            text = row.strip()
    return lines


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


KAFKA_LINES: Final[Mapping[str, LogLine]] = _read(_TABLE)


def lines_named(names: str) -> tuple[LogLine, ...]:
    """The lines of some names, with spaces between them."""
    return tuple(KAFKA_LINES[name] for name in names.split())


def of_coordinator(line: LogLine) -> LogLine:
    """The same line, about the partition of the coordinator."""
    names = {"{topic}": "__transaction_state", "{partition}": "{coordinator_partition}"}
    forms = (
        replace(form, text=re.sub(r"\{(topic|partition)\}", lambda name: names[name[0]], form.text))
        for form in line.forms
    )
    is_replica = line.writer in (Writer.LEADER, Writer.FOLLOWER, Writer.REPLICA)
    return replace(line, writer=Writer.COORDINATOR_REPLICA if is_replica else line.writer, forms=tuple(forms))


# ---- The lines of each cause and each finding


def _logs(
    names: str = "", silent_because: str | None = None, about_coordinator: str = "", then: str = ""
) -> BrokerLogs:
    """Lines by name: of any partition, those of `about_coordinator` for the coordinator's partition, then `then`."""
    lines = (*lines_named(names), *map(of_coordinator, lines_named(about_coordinator)), *lines_named(then))
    return BrokerLogs(lines, silent_because)


_UNCLEAN: Final = "UNCLEAN_KRAFT UNCLEAN_TRIGGERED ELECTED_FROM_OFFLINE TRUNCATED"
_DELETED: Final = "TOPIC_REMOVED_KRAFT TOPIC_REMOVED_ZOOKEEPER LOG_DELETED"
_PRODUCER_IDS: Final = "PRODUCER_IDS_KRAFT PRODUCER_IDS_ZOOKEEPER"
_EPOCH_REFUSED: Final = "MARKER_REFUSED_EPOCH REFUSED_EPOCH"
_ACCEPTED: Final = "a leader that accepts a batch logs nothing"
_VERIFICATION: Final = (
    f"{_ACCEPTED}, and from 3.6 on one that refuses it because its verification failed logs only DEBUG"
    " (`kafka.server.KafkaApis`)"
)
_LATE: Final = _logs(
    "ROLLED_BACK INITIALIZED PRODUCER_RETRIED VERIFICATION_SKIPPED",
    f"{_VERIFICATION}. The lines show what made the batch late",
)
_NOT_ADDED: Final = _logs("VERIFICATION_SKIPPED", _VERIFICATION)
_EXPIRED: Final = "a coordinator logs an expiry only if it fails"
_NO_CHECK: Final = "no broker checks who made a producer id. The lines show the ids that the cluster handed out"
_LOSSES: Final = f"{_UNCLEAN} {_DELETED} RECOVERY_TRUNCATED"
_LOADS: Final = "NOTHING_TO_LOAD LOADING_FAILED LOADED"

LOGS_OF_CAUSES: Final[Mapping[CauseName, BrokerLogs]] = {
    CauseName.UNCLEAN_ELECTION: _logs(_UNCLEAN),
    CauseName.UNDATED_ELECTION: _logs(_UNCLEAN),
    CauseName.TOPIC_CREATED_AGAIN: _logs(f"{_DELETED} LOG_CREATED"),
    CauseName.DROPPED_WITHOUT_LEADER: _logs("MARKER_SKIPPED WITHOUT_LEADER"),
    CauseName.TRANSACTION_VERSION_LOWERED: _logs("TRANSACTION_VERSION"),
    CauseName.MARKER_LOST: _logs(f"{_UNCLEAN} {_DELETED} MARKER_SKIPPED"),
    CauseName.NO_LEADER: _logs("WITHOUT_LEADER NOT_ELECTED MARKER_RETRIED"),
    CauseName.NO_COORDINATOR: _logs(about_coordinator="WITHOUT_LEADER NOT_ELECTED", then="RESIGNED"),
    CauseName.COORDINATOR_FENCED: _logs("FENCED ELECTED LOADED LOADING_FAILED"),
    CauseName.OLD_TIMES: _logs(
        silent_because="a leader accepts old timestamps and logs nothing, unless a limit of the topic refuses them"
    ),
    CauseName.OFFSET_COMMIT_RACED: _logs("ROLLED_BACK", f"{_ACCEPTED}. The line shows what the commit raced with"),
    CauseName.LATE_PRODUCE: _LATE,
    CauseName.ENDED_EARLY: _logs(
        "MARKER_RETRIED MARKERS_AFTER_LOADING MARKERS_CANCELLED",
        "brokers 4.0 and 4.1 accept a repeated marker and log nothing. The lines show why it was repeated",
    ),
    CauseName.OTHER_CLIENT_CONTINUED: _logs(silent_because=_VERIFICATION),
    CauseName.PARTITION_NOT_ADDED: _NOT_ADDED,
    CauseName.PARTITION_NOT_ADDED_TO_NEWEST: _NOT_ADDED,
    CauseName.FOREIGN_PRODUCER_ID: _logs(f"{_PRODUCER_IDS} GIVEN_TO", _NO_CHECK),
    CauseName.COORDINATOR_LOST_RECORDS: _logs(about_coordinator=_LOSSES, then=_LOADS),
    CauseName.ID_EXPIRED: _logs("GIVEN_TO", _EXPIRED),
    CauseName.RECORDS_LOST_OR_ID_MADE_UP: _logs("GIVEN_TO", _NO_CHECK, about_coordinator=_LOSSES, then=_LOADS),
    CauseName.HUNG_UNTIL_EXPIRY: _logs("INITIALIZED", _EXPIRED),
    CauseName.LATE_WITH_FORMER_PRODUCER_ID: _LATE,
    CauseName.COORDINATOR_UNCLEAN_ELECTION: _logs(about_coordinator=_UNCLEAN, then="LOADED"),
    CauseName.EPOCH_MADE_UP: _logs(
        f"{_EPOCH_REFUSED} VERIFICATION_SKIPPED", f"{_ACCEPTED}. The lines show what its epoch stopped afterwards"
    ),
    CauseName.COORDINATOR_LOST_NEWEST_RECORDS: _logs(about_coordinator=_LOSSES, then=_LOADS),
    CauseName.EPOCH_AHEAD: _logs(_EPOCH_REFUSED),
    CauseName.COORDINATOR_EPOCH_AHEAD: _logs("MARKER_REFUSED_COORDINATOR REFUSED_COORDINATOR_EPOCH"),
    CauseName.LEADER_UNREACHABLE: _logs("UNREACHABLE MARKER_RETRIED"),
    CauseName.FORGOTTEN: _logs(
        "MARKERS_CANCELLED NO_LONGER_COORDINATOR COMPLETION_CANCELLED DEAD_QUEUE MARKERS_AFTER_LOADING",
        "a coordinator that forgets a marker logs nothing. The lines show events that come before it",
    ),
    CauseName.REPEATED_MARKER_REFUSED: _logs(f"{_EPOCH_REFUSED} REPEATED_MARKER"),
    CauseName.EPOCH_EXHAUSTED: _logs("EPOCH_EXHAUSTED SCAN_FAILED"),
    CauseName.TIMEOUT_SCAN_STOPPED: _logs("SCAN_FAILED ROLLBACK_FAILED RESIGNED ELECTED LOADING_FAILED"),
}


def logs_of_cause(cause: str, names: Mapping[str, object]) -> BrokerLogs | None:
    """The log lines of a cause, by its text with the names of a transaction; None if a newer or older release wrote the
    text."""
    filled = {name: names.get(name) for name in ("transactional_id", "coordinator_partition")}
    return next((logs for name, logs in LOGS_OF_CAUSES.items() if name.format(**filled) == cause), None)


LOGS_OF_FINDINGS: Final[Mapping[Finding, BrokerLogs]] = {
    finding: _logs(rule.logs, rule.not_logged) for finding, rule in FINDINGS.items()
}
