"""Log lines about leaders, topics, producer ids and files.

Controllers with KRaft are claimed from 3.3 on, the first version with KRaft in production; those with ZooKeeper up to 3.9.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from txnlib.core.broker_logs.log_line import Form, Level, LogFile, LogLine, Version, Writer

_CONTROL: Final = "org.apache.kafka.controller"
_STORAGE: Final = "org.apache.kafka.storage.internals.log"
_OLD_CONTROL: Final = "kafka.controller"
_OLD_LOGS: Final = "kafka.log"
_KRAFT: Final[Version] = (3, 3)
_ZOOKEEPER: Final[Version] = (3, 9)
_DEBUG, _INFO, _WARN, _ERROR = Level.DEBUG, Level.INFO, Level.WARN, Level.ERROR


def of_coordinator(line: LogLine) -> LogLine:
    """The same line, about the partition of the coordinator."""
    names = {"{topic}": "__transaction_state", "{partition}": "{coordinator_partition}"}
    forms = []
    for form in line.forms:
        text = form.text
        for name, instead in names.items():
            text = text.replace(name, instead)
        forms.append(replace(form, text=text))
    is_replica = line.writer in (Writer.LEADER, Writer.FOLLOWER, Writer.REPLICA)
    return replace(line, writer=Writer.COORDINATOR_REPLICA if is_replica else line.writer, forms=tuple(forms))


# --- Elections ---

_UNCLEAN: Final = (
    "Setting new leader for topicId …, partition {partition} to … using an unclean election",
    f"{_CONTROL}.PartitionChangeBuilder.tryElection",
)
UNCLEAN_KRAFT: Final = LogLine(
    "an unclean election (KRaft); the line has the id of the topic, not its name",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (Form(*_UNCLEAN, _DEBUG, _KRAFT, (3, 5)), Form(*_UNCLEAN, _INFO, first=(3, 6))),
)
_TRIGGERED: Final = "Triggering unclean leader election for offline partition {topic}-{partition}."
_TRIGGERS: Final = f"{_CONTROL}.ReplicationControlManager.maybeTriggerUncleanLeaderElectionForLeaderlessPartitions"
UNCLEAN_TRIGGERED: Final = LogLine(
    "an unclean election of a partition without leader (KRaft)",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (Form(_TRIGGERED, _TRIGGERS, _ERROR, (3, 9), (3, 9)), Form(_TRIGGERED, _TRIGGERS, _INFO, first=(4, 0))),
)
ELECTED_FROM_OFFLINE: Final = LogLine(
    "a partition without leader got one (ZooKeeper); unclean if the new leader was not in the in-sync replicas of the line before",
    Writer.CONTROLLER,
    LogFile.STATE_CHANGE,
    (
        Form(
            "Changed partition {topic}-{partition} from OfflinePartition to OnlinePartition with state",
            f"{_OLD_CONTROL}.ZkPartitionStateMachine.doHandleStateChanges",
            _INFO,
            last=_ZOOKEEPER,
        ),
    ),
)
NOT_ELECTED: Final = LogLine(
    "the controller found no leader (ZooKeeper)",
    Writer.CONTROLLER,
    LogFile.STATE_CHANGE,
    (
        Form(
            "failed to change state for partition {topic}-{partition} from … to OnlinePartition",
            f"{_OLD_CONTROL}.ZkPartitionStateMachine.logFailedStateChange",
            _ERROR,
            last=_ZOOKEEPER,
        ),
    ),
)
_TRUNCATING: Final = "Truncating {topic}-{partition} to offset … below high watermark"
TRUNCATED: Final = LogLine(
    "a replica removed records that had been acknowledged",
    Writer.REPLICA,
    LogFile.SERVER,
    (
        Form(_TRUNCATING, "kafka.server.ReplicaFetcherThread.truncate", _WARN, last=(4, 1)),
        Form(_TRUNCATING, f"{_STORAGE}.UnifiedLog.truncateTo", _WARN, first=(4, 2)),
    ),
)
WITHOUT_LEADER: Final = LogLine(
    "a replica learned that the partition has no leader",
    Writer.REPLICA,
    LogFile.STATE_CHANGE,
    (
        Form(
            "Follower {topic}-{partition} starts at leader epoch … Current leader is -1.",
            "kafka.cluster.Partition.makeFollower",
            _INFO,
            first=(3, 3),
        ),
    ),
)
FENCED: Final = LogLine(
    "the controller fenced a broker that sent no heartbeats (KRaft)",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (
        Form(
            "Fencing broker … because its session has timed out.",
            f"{_CONTROL}.ReplicationControlManager.maybeFenceOneStaleBroker",
            _INFO,
            first=_KRAFT,
        ),
    ),
)
_FEATURE: Final = f"{_CONTROL}.FeatureControlManager.replay"
TRANSACTION_VERSION: Final = LogLine(
    "transaction.version changed",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (
        Form("Replayed a FeatureLevelRecord setting feature transaction.version to", _FEATURE, _INFO, first=(3, 6)),
        Form("Replayed a FeatureLevelRecord removing feature transaction.version", _FEATURE, _INFO, first=(3, 6)),
    ),
)
UNCLEAN: Final = (UNCLEAN_KRAFT, UNCLEAN_TRIGGERED, ELECTED_FROM_OFFLINE, TRUNCATED)

# --- Topics ---

_REPLAY: Final = f"{_CONTROL}.ReplicationControlManager.replay"
TOPIC_REMOVED_KRAFT: Final = LogLine(
    "the topic was deleted (KRaft)",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (
        Form("Removed topic {topic} with ID", _REPLAY, _INFO, _KRAFT, (3, 5)),
        Form("Replayed RemoveTopicRecord for topic {topic} with ID", _REPLAY, _INFO, first=(3, 6)),
    ),
)
TOPIC_REMOVED_ZOOKEEPER: Final = LogLine(
    "the topic was deleted (ZooKeeper)",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (
        Form(
            "Deletion of topic {topic} successfully completed",
            f"{_OLD_CONTROL}.TopicDeletionManager.resumeDeletions",
            _INFO,
            last=_ZOOKEEPER,
        ),
    ),
)
LOG_DELETED: Final = LogLine(
    "a replica of the partition was deleted",
    Writer.REPLICA,
    LogFile.SERVER,
    (
        Form(
            "Log for partition {topic}-{partition} is renamed to … and is scheduled for deletion",
            f"{_OLD_LOGS}.LogManager.asyncDelete",
            _INFO,
        ),
    ),
)
LOG_CREATED: Final = LogLine(
    "a replica of the partition was created empty",
    Writer.REPLICA,
    LogFile.SERVER,
    (Form("Created log for partition {topic}-{partition} in", f"{_OLD_LOGS}.LogManager.getOrCreateLog", _INFO),),
)
LOG_STRAY: Final = LogLine(
    "a broker found a replica that is not assigned to it",
    Writer.REPLICA,
    LogFile.SERVER,
    (
        Form(
            "Log for partition {topic}-{partition} is marked as stray and renamed to",
            f"{_OLD_LOGS}.LogManager.asyncDelete",
            _WARN,
            first=(3, 6),
        ),
    ),
)
DELETED: Final = (TOPIC_REMOVED_KRAFT, TOPIC_REMOVED_ZOOKEEPER, LOG_DELETED)

# --- Producer ids ---

PRODUCER_IDS_KRAFT: Final = LogLine(
    "the controller handed out a block of producer ids (KRaft); nextProducerId is the first id after it",
    Writer.CONTROLLER,
    LogFile.CONTROLLER,
    (Form("Replaying ProducerIdsRecord", f"{_CONTROL}.ProducerIdControlManager.replay", _INFO, first=(3, 6)),),
)
_BLOCK: Final = "Acquired new producerId block … by writing to Zk with path version"
_OLD_IDS: Final = "kafka.coordinator.transaction"
PRODUCER_IDS_ZOOKEEPER: Final = LogLine(
    "a broker took a block of producer ids (ZooKeeper); search all brokers",
    Writer.COORDINATOR,
    LogFile.SERVER,
    (
        Form(_BLOCK, f"{_OLD_IDS}.ProducerIdManager.getNewProducerIdBlock", _INFO, last=(2, 8)),
        Form(_BLOCK, f"{_OLD_IDS}.ZkProducerIdManager.getNewProducerIdBlock", _INFO, (3, 0), _ZOOKEEPER),
    ),
)
_OVERLAP: Final = "Producer ID block is not monotonic with current block: current="
PRODUCER_IDS_WRONG: Final = LogLine(
    "a broker was given a block of producer ids that is not above its own",
    Writer.COORDINATOR,
    LogFile.SERVER,
    (
        Form(_OVERLAP, f"{_OLD_IDS}.RPCProducerIdManager.handleAllocateProducerIdsResponse", _ERROR, (3, 6), (3, 9)),
        Form(
            _OVERLAP,
            f"org.apache.{_OLD_IDS}.RPCProducerIdManager.handleAllocateProducerIdsResponse",
            _ERROR,
            first=(4, 0),
        ),
    ),
)
PRODUCER_IDS: Final = (PRODUCER_IDS_KRAFT, PRODUCER_IDS_ZOOKEEPER)

# --- Files, when a broker starts ---

_CORRUPTION: Final = "partition={topic}-{partition}, dir=…] Corruption found in segment …, truncating to offset"
RECOVERY_TRUNCATED: Final = LogLine(
    "a broker removed damaged records when it started",
    Writer.REPLICA,
    LogFile.SERVER,
    (
        Form(_CORRUPTION, f"{_OLD_LOGS}.Log.recoverLog", _WARN, last=(2, 8)),
        Form(_CORRUPTION, f"{_OLD_LOGS}.LogLoader.recoverLog", _WARN, (3, 0), (3, 9)),
        Form(_CORRUPTION, f"{_STORAGE}.LogLoader.recoverLog", _WARN, first=(4, 0)),
    ),
)
_INDEX: Final = "Found a corrupted index file corresponding to log file …/{topic}-{partition}/… due to"
INDEX_REBUILT: Final = LogLine(
    "a broker rebuilt the indexes of a segment when it started",
    Writer.REPLICA,
    LogFile.SERVER,
    (
        Form(_INDEX, f"{_OLD_LOGS}.Log.loadSegmentFiles", _WARN, last=(2, 8)),
        Form(_INDEX, f"{_OLD_LOGS}.LogLoader.loadSegmentFiles", _WARN, (3, 0), (3, 9)),
        Form(_INDEX, f"{_STORAGE}.LogLoader.loadSegmentFiles", _WARN, first=(4, 0)),
    ),
)
