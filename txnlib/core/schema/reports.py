"""The tables of both sides: what is open, what it blocks, and what is odd."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from txnlib.core.finding import Severity
from txnlib.core.schema.columns import (
    AS_OF,
    BOOLEAN,
    INT,
    LONG,
    OPEN_TRANSACTION,
    PARTITION_COLUMNS,
    STRING,
    TIMESTAMP,
    Array,
    Column,
    Table,
    are_present,
    is_one_of,
    struct,
    type_of,
)
from txnlib.core.verdicts.dossier import Carried
from txnlib.core.verdicts.reason import Verdict

#: A statement of the proof that an abort is safe.
PROOF: Final = struct(name=STRING, holds=BOOLEAN, says=STRING, witnesses=Array(STRING))
CAUSE: Final = struct(cause=STRING, likelihood=STRING, evidence=STRING)
EVIDENCE_RECORD: Final = struct(topic=STRING, partition=INT, offset=LONG, record=STRING, says=STRING)

#: CHECK constraints of every table of judged transactions.
_JUDGED: Final = {
    "transaction_is_named": are_present("as_of", *OPEN_TRANSACTION),
    "verdict_is_explained": are_present("verdict", "reason", "explanation"),
    "abort_is_whole": "NOT coalesce(safe_to_abort, false) OR (verdict = 'HANGING' AND abort_command IS NOT NULL)",
}

OPEN_TRANSACTIONS: Final = Table(
    comment="The open transactions of each partition, with their verdicts.",
    columns=(
        AS_OF,
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch known to the partition."),
        Column("coordinator_epoch", INT, "Coordinator epoch of the producer's last marker."),
        Column("start_offset", LONG, "First offset of the transaction."),
        Column(
            "last_timestamp",
            TIMESTAMP,
            "Time of the producer's last write, by the client's clock in CreateTime topics.",
        ),
        Column("last_timestamp_ms", LONG, "last_timestamp in epoch ms, even if out of a timestamp's range."),
        Column("duration_minutes", LONG, "Whole minutes since last_timestamp, as in find-hanging."),
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("coordinator_partition", INT, "Partition of __transaction_state with the records of the id."),
        Column("coordinator_state", STRING, "State of the id; NULL if unknown or expired."),
        Column("transaction_start", TIMESTAMP, "When it began, by the coordinator's clock."),
        Column("transaction_timeout_ms", LONG, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("is_two_phase_commit", BOOLEAN, "Whether it is a two-phase commit, which never times out (KIP-939)."),
        Column("verdict", STRING, "HANGING, SUSPECT, STUCK, LATE, OPEN or UNKNOWN."),
        Column("reason", STRING, "Name of the reason."),
        Column("explanation", STRING, "The reason as a sentence."),
        Column("kafka_find_hanging", BOOLEAN, "Whether the live find-hanging would print it; NULL if undecidable."),
        Column("causes", Array(CAUSE), "Probable causes, most likely first."),
        Column("evidence", Array(EVIDENCE_RECORD), "Records that support the verdict."),
        Column("late_by", STRING, "Which limit was exceeded: LAST_WRITE, COORDINATOR_START or BOTH; NULL unless LATE."),
        Column("age_basis", STRING, "Clock of last_timestamp: BROKER_CLOCK or CLIENT_CLOCK."),
        Column("broker_clock_age_ms", LONG, "Age proven by brokers' clocks; NULL if none is proven."),
        Column("safe_to_abort", BOOLEAN, "Whether the abort command may be run."),
        Column("abort_command", STRING, "The exact command; NULL if an abort by hand would be wrong."),
        Column("do_not_abort_because", STRING, "Why an abort by hand is wrong, or not yet safe."),
        Column(
            "blocked_offsets", LONG, "Offsets from its start, or from the log start above it, to the high watermark."
        ),
        Column("blocked_bytes", LONG, "Bytes of these offsets."),
        Column("blocks_since", TIMESTAMP, "Since when it blocks consumers, by the best available clock."),
        Column("first_seen", TIMESTAMP, "as_of of the first audit that saw it."),
        Column("runs_seen", INT, "Number of audits that saw it, this one included."),
        Column(
            "ends_by",
            TIMESTAMP,
            "By when its coordinator ends it: its start, its timeout, and a scan for timeouts. NULL where nobody ends"
            " it, or nobody knows when.",
        ),
        Column(
            "holds",
            BOOLEAN,
            "Whether the last stable offset waits for it; if not, another one is ahead. NULL if the leader says that"
            " it waits for one that no record shows.",
        ),
        Column("application", STRING, "Application, derived from the form of the transactional id."),
        Column("safe_from", TIMESTAMP, "When an abort becomes safe, if only the age is missing."),
        Column(
            "safety",
            Array(PROOF),
            "The proof that an abort is safe: each statement, whether it holds, what holds or is missing, and its"
            " witnesses; where a COMMIT may include it, the history in which one does.",
        ),
        Column("records", LONG, "Records that an abort discards; NULL if not counted."),
        Column(
            "committed_siblings",
            Array(STRING),
            "Other partitions on which the producer has committed since, at most 20.",
        ),
        Column("copied_at", TIMESTAMP, "Instant up to which the copies show that it was open."),
        Column(
            "carried",
            type_of(Carried),
            "What was read of its coordinator's log, for later audits: compaction may remove it (times are epoch ms).",
        ),
        Column("topic_id", STRING, "Topic id of the copy, by which later audits recognise it."),
        Column("first_batch_crc", LONG, "CRC of its first batch, by which later audits recognise it."),
        Column(
            "newest_leader_epoch",
            INT,
            "Newest leader epoch of the copy, by which later audits see elections; NULL if it may be younger than the"
            " copy of a coordinator.",
        ),
        Column("record_offset", LONG, "Offset of the last record of its id, by which later audits see newer ones."),
    ),
    checks={**_JUDGED, "verdict_is_known": is_one_of("verdict", *Verdict)},
    shown={
        "open": (
            "topic partition start_offset verdict transactional_id holds blocked_offsets blocks_since ends_by"
            " safe_to_abort reason | application producer_id producer_epoch coordinator_state first_seen runs_seen"
            " explanation do_not_abort_because"
        ),
        "hanging": "topic partition start_offset transactional_id blocked_offsets blocks_since safe_to_abort reason",
        "find-hanging": (
            "topic partition producer_id producer_epoch coordinator_epoch start_offset last_timestamp "
            "duration_minutes transactional_id verdict reason"
        ),
        "explain": (
            "topic partition producer_id producer_epoch coordinator_epoch start_offset last_timestamp last_timestamp_ms"
            " duration_minutes transactional_id coordinator_partition coordinator_state verdict reason explanation"
            " kafka_find_hanging causes evidence late_by age_basis broker_clock_age_ms safe_to_abort abort_command"
            " do_not_abort_because blocked_offsets blocked_bytes blocks_since ends_by holds first_seen runs_seen"
            " safe_from safety"
        ),
        "report": (
            "topic partition producer_id start_offset producer_epoch transactional_id application coordinator_partition"
            " coordinator_state transaction_start transaction_timeout_ms is_two_phase_commit last_timestamp"
            " last_timestamp_ms duration_minutes verdict reason explanation causes evidence age_basis"
            " broker_clock_age_ms safe_to_abort abort_command do_not_abort_because blocked_offsets blocked_bytes"
            " blocks_since ends_by holds first_seen runs_seen safe_from safety"
        ),
        "summary": (
            "topic partition producer_id producer_epoch start_offset transactional_id verdict reason blocks_since "
            "blocked_offsets blocked_bytes safe_to_abort runs_seen application explanation safe_from ends_by holds"
        ),
        "page": (
            "topic partition producer_id start_offset transactional_id verdict reason blocked_offsets blocks_since"
            " ends_by holds runs_seen"
        ),
        "page: two-phase": (
            "topic partition start_offset producer_id transactional_id coordinator_state coordinator_partition "
            "transaction_start blocked_offsets verdict"
        ),
    },
)

HANGING_TRANSACTIONS: Final = replace(
    OPEN_TRANSACTIONS,
    comment="The open transactions that no coordinator will end.",
    checks={**_JUDGED, "verdict_is_known": is_one_of("verdict", Verdict.HANGING)},
    shown={},
)

LATE_TRANSACTIONS: Final = replace(
    OPEN_TRANSACTIONS,
    comment="The open transactions that their coordinator should have ended.",
    checks={**_JUDGED, "verdict_is_known": is_one_of("verdict", Verdict.LATE)},
    shown={
        "find-late": (
            "topic partition start_offset transactional_id late_by coordinator_state blocked_offsets transaction_start"
            " | transaction_timeout_ms last_timestamp duration_minutes producer_id producer_epoch"
        )
    },
)

#: Commands, each with what it must print.
STEPS: Final = Array(struct(command=STRING, must_print=STRING))

ABORT_PLAN: Final = Table(
    comment="The steps that end the open transactions, in order.",
    columns=(
        AS_OF,
        Column("number", INT, "Order of the actions, starting with 1."),
        Column(
            "action",
            STRING,
            "ABORT, ABORT_AS_DECIDED (the coordinator's ABORT is refused), RESTORE_REPLICAS (too few are in sync),"
            " END_AT_COORDINATOR, REVIVE_COORDINATOR, ABORT_LATER (not safe yet), WAIT, CAPTURE_MORE, DO_NOT_ABORT (an"
            " abort by hand would be wrong, or is not proven right) or CHECK_TIMESTAMPS.",
        ),
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("start_offset", LONG, "First offset of the transaction."),
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("coordinator_partition", INT, "Partition of __transaction_state with the records of the id."),
        Column("verdict", STRING, "Verdict on the transaction."),
        Column("reason", STRING, "Name of the reason."),
        Column("do_not_abort_because", STRING, "Why an abort by hand is wrong, or not yet safe."),
        Column("not_before", TIMESTAMP, "The instant until which the step has to wait, if only time is missing."),
        Column("before", STEPS, "Commands to run first, and what they must print."),
        Column("command", STRING, "The command that ends it; NULL if none should be run."),
        Column("command_for_old_brokers", STRING, "The same for brokers before 3.0, if their version is unknown."),
        Column("after", STEPS, "Commands that show whether the command took effect."),
        Column("effect", STRING, "What the step does to records, on all partitions; NULL if it ends nothing."),
        Column("notes", Array(STRING), "What to know before the command is run."),
        Column("is_holder", BOOLEAN, "Whether it blocks the last stable offset; if not, another one blocks first."),
        Column("places", Array(STRING), "Every partition on which the step ends it, with its start offset there."),
        Column(
            "blocked_offsets", LONG, "Offsets from its start, or from the log start above it, to the high watermark."
        ),
        Column("blocks_since", TIMESTAMP, "Since when it blocks consumers, by the best available clock."),
    ),
    shown={
        "abort-plan": (
            "number action topic partition start_offset producer_id transactional_id verdict not_before | reason effect"
            " do_not_abort_because command command_for_old_brokers"
        ),
        "report: first": (
            "number action not_before is_holder topic partition producer_id start_offset transactional_id"
            " coordinator_partition"
        ),
        "report: plan": (
            "number action is_holder not_before before command command_for_old_brokers after effect notes places"
        ),
        "page: plan": (
            "number action topic partition producer_id start_offset transactional_id verdict reason"
            " do_not_abort_because not_before command command_for_old_brokers before after effect notes places"
            " blocked_offsets"
            " is_holder"
        ),
    },
)

ENDED_TRANSACTIONS: Final = Table(
    comment="Transactions that were open in an earlier run, and how they ended.",
    columns=(
        AS_OF,
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("start_offset", LONG, "First offset of the transaction."),
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("verdict", STRING, "Verdict of the last run that saw it open."),
        Column("reason", STRING, "Name of the reason of that verdict."),
        Column("run_id_then", STRING, "The last run that saw it open."),
        Column("last_seen", TIMESTAMP, "as_of of the last run that saw it open."),
        Column(
            "how",
            STRING,
            "DECIDED (its coordinator's marker), BY_HAND (a marker without a decision), SPLIT (by hand, against the"
            " decision), MARKED (a marker of unknown origin), LOG_START_MOVED, TOPIC_GONE, GONE, or NOT_CAPTURED, which"
            " the next audit reports again.",
        ),
        Column("outcome", STRING, "COMMIT or ABORT, by its marker."),
        Column("marker_offset", LONG, "Offset of its marker."),
        Column("ended_at", TIMESTAMP, "Time of its marker."),
        Column("says", STRING, "How the transaction ended, as a sentence."),
    ),
    shown={"page: ended": "run_id as_of topic partition start_offset producer_id transactional_id verdict reason says"},
)

PARTITIONS: Final = Table(
    comment="The last stable offset of each partition, and what blocks it.",
    columns=(
        AS_OF,
        *PARTITION_COLUMNS,
        Column("end_offset", LONG, "Offset after the last batch."),
        Column("log_start_offset", LONG, "Lowest offset that can be read."),
        Column("high_watermark", LONG, "High watermark in the checkpoint, else the end offset."),
        Column(
            "is_high_watermark_assumed", BOOLEAN, "Whether it is the end offset, because no checkpoint was captured."
        ),
        Column("last_stable_offset", LONG, "Last stable offset: read_committed consumers stop here."),
        Column("lag_offsets", LONG, "High watermark minus last stable offset."),
        Column("lag_bytes", LONG, "Bytes of the batches from the last stable offset on."),
        Column("lag_ms", LONG, "Age of the batch at the last stable offset, at as_of."),
        Column("blocking_producer_id", LONG, "Producer of the transaction that blocks the last stable offset."),
        Column(
            "blocking_transactional_id",
            STRING,
            "Transactional id of the transaction that blocks the last stable offset.",
        ),
        Column(
            "blocking_verdict",
            STRING,
            "Verdict on it; UNKNOWN without a producer if only the leader's answer shows that something is open.",
        ),
        Column("next_blocking_offset", LONG, "Start of the transaction that blocks next; NULL if none."),
        Column("next_blocking_producer_id", LONG, "Producer of the transaction that blocks next."),
        Column("next_blocking_transactional_id", STRING, "Transactional id of the transaction that blocks next."),
        Column("is_late", BOOLEAN, "Whether brokers count the partition in PartitionsWithLateTransactionsCount."),
    ),
    shown={
        "timeline: partition": (
            "last_stable_offset log_start_offset high_watermark lag_offsets lag_ms blocking_producer_id "
            "blocking_transactional_id blocking_verdict"
        ),
        "report: partition": (
            "end_offset high_watermark last_stable_offset lag_offsets lag_bytes blocking_producer_id "
            "blocking_transactional_id "
            "next_blocking_offset next_blocking_producer_id next_blocking_transactional_id"
        ),
        "summary: lag": (
            "topic partition lag_offsets lag_bytes lag_ms blocking_producer_id blocking_transactional_id "
            "blocking_verdict"
        ),
        "page: lag": (
            "topic partition lag_offsets lag_bytes lag_ms last_stable_offset high_watermark blocking_producer_id "
            "blocking_transactional_id blocking_verdict"
        ),
    },
)

BLOCKED_GROUPS: Final = Table(
    comment="The consumer groups that wait at a last stable offset.",
    columns=(
        AS_OF,
        Column("group_id", STRING, "Group that has read up to the last stable offset and waits."),
        *PARTITION_COLUMNS,
        Column("committed_offset", LONG, "Offset that the group would read next."),
        Column("last_stable_offset", LONG, "Last stable offset: read_committed consumers stop here."),
        Column("high_watermark", LONG, "High watermark of the partition."),
        Column("lag_offsets", LONG, "High watermark minus committed offset."),
        Column("committed_at", TIMESTAMP, "Time of the group's commit, by its coordinator's clock."),
        Column("blocking_producer_id", LONG, "Producer of the transaction that blocks the last stable offset."),
        Column(
            "blocking_transactional_id",
            STRING,
            "Transactional id of the transaction that blocks the last stable offset.",
        ),
    ),
    shown={
        "groups": (
            "group_id topic partition lag_offsets last_stable_offset blocking_transactional_id committed_at | "
            "committed_offset high_watermark blocking_producer_id"
        )
    },
)

FINDINGS: Final = Table(
    comment="The findings: what is odd in the logs.",
    columns=(
        Column("name", STRING, "Name of the finding."),
        Column("severity", STRING, "INFO, WARNING, ERROR or CRITICAL."),
        *PARTITION_COLUMNS,
        Column("offset", LONG, "Offset of the record that shows the finding."),
        Column("producer_id", LONG, "Producer id."),
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("transaction_number", LONG, "Number of the transaction that it contradicts or lacks; NULL if none."),
        Column("message", STRING, "Meaning of the finding."),
        Column("evidence", STRING, "The record, with the state before it."),
    ),
    checks={
        "severity_is_known": is_one_of("severity", *(severity.name for severity in Severity)),
        "name_is_there": are_present("name"),
    },
    shown={
        "findings": "severity name topic partition offset transactional_id producer_id evidence message",
        "report: findings": "name severity topic partition offset producer_id transactional_id evidence",
        "page: findings": "topic partition offset producer_id transactional_id evidence",
    },
)
