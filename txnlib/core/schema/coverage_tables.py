"""The tables about what each copy of a partition shows."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BOOLEAN,
    COPY_COLUMNS,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TOPIC_PARTITION,
    Array,
    Column,
    Table,
    are_present,
    is_one_of,
    struct,
)

#: Leader epochs, each with the first offset that a newer leader truncated.
TRUNCATED: Final = Array(struct(leader_epoch=INT, from_offset=LONG))
LEADER_EPOCHS: Final = Array(struct(leader_epoch=INT, from_offset=LONG))
#: Copies of which only files beside the log were captured (`core.copies.CopyBeside`).
COPIES_BESIDE: Final = Array(
    struct(source=STRING, broker=STRING, leader_epoch=INT, from_offset=LONG, overtaken_from=LONG)
)

COVERAGE: Final = Table(
    comment=(
        "A row for each copy of a partition: what the copy shows, and up to when. Missing partitions have a row, too."
    ),
    columns=(
        *COPY_COLUMNS,
        Column("broker", STRING, "Broker, by the name of its folder."),
        Column(
            "is_judged",
            BOOLEAN,
            "Whether verdicts rest on this copy: the leader's, else the longest with the newest leader epoch.",
        ),
        Column("leader", STRING, "Broker that leads the partition; -1 if none; NULL if not known."),
        Column(
            "leader_basis",
            STRING,
            "How the leader is known: CAPTURE_JSON; METADATA_LOG, which was growing when it was copied;"
            " METADATA_LOG_UNCONFIRMED, if that is not known; METADATA_LOG_STALE, if it had ended long before;"
            " METADATA_LOG_DAMAGED, if the record with the leader may be lost.",
        ),
        Column("noted_leader", STRING, "Leader by capture.json; -1 if none."),
        Column("assigned_leader", STRING, "Leader by the metadata log; -1 if none."),
        Column("in_sync", Array(STRING), "In-sync and eligible leader replicas, from the metadata log."),
        Column("is_leader", BOOLEAN, "Whether the copy is the leader's; NULL if not known."),
        Column("topic_id", STRING, "Topic id in partition.metadata; NULL if it was not captured."),
        Column("is_deleted", BOOLEAN, "Whether the copy is of a deleted topic; such a copy is not judged."),
        Column(
            "checkpoint_leader_epoch",
            INT,
            "Newest leader epoch in the leader-epoch-checkpoint, or that its leader answered.",
        ),
        Column("leader_epoch", INT, "Newest leader epoch in the leader-epoch-checkpoint and the batches."),
        Column("leader_epochs", LEADER_EPOCHS, "Its leader epochs, each with its first offset, as far as shown."),
        Column(
            "role",
            STRING,
            "LEADER, LAST_LEADER (of a partition without leader), FURTHEST (leader unknown, and no copy reaches"
            " further) or OTHER.",
        ),
        Column(
            "is_current",
            BOOLEAN,
            "Whether the copy shows everything up to its instant; if not, only up to its newest broker stamp.",
        ),
        Column(
            "truncated",
            TRUNCATED,
            "Leader epochs that a newer leader truncated, each with the first truncated offset; NULL if none.",
        ),
        Column(
            "copies_beside",
            COPIES_BESIDE,
            "Of the judged copy: the copies of which only files beside the log were captured, each with its newest"
            " leader epoch, where that begins, and from where on a newer one truncated that log; NULL if none.",
        ),
        Column("first_offset", LONG, "Offset of the first batch that was read."),
        Column("end_offset", LONG, "Offset after the last batch that was read."),
        Column("survives_until", LONG, "Offset after the last batch that no newer leader truncated."),
        Column("log_start_offset", LONG, "Log start offset from the checkpoint, else of the first segment."),
        Column(
            "read_from_offset",
            LONG,
            "Base offset of the first segment; above the log start if it was fetched from there on by scope.",
        ),
        Column(
            "hidden_below", LONG, "Offset from which it was read, if no snapshot or answer shows what was open there."
        ),
        Column("high_watermark", LONG, "High watermark in the copy's checkpoint."),
        Column(
            "noted_high_watermark",
            LONG,
            "Highest in any broker's checkpoint, or answered by its leader, that is not younger than the copy.",
        ),
        Column(
            "ends",
            STRING,
            "How it ends: WHOLE, TORN (inside a batch) or SHORT (below noted_high_watermark, or in unreadable bytes).",
        ),
        Column("checkpointed_at", TIMESTAMP, "When the checkpoint was copied, by capture.json."),
        Column("captured_at", TIMESTAMP, "When the copy was taken, by capture.json or --captured-at."),
        Column("newest_stamp", TIMESTAMP, "Newest broker-stamped time in the copy."),
        Column("known_until", TIMESTAMP, "Instant up to which the copy shows everything."),
        Column("is_instant_assumed", BOOLEAN, "Whether known_until is only the copy's newest broker-stamped time."),
        Column("bytes", LONG, "Bytes of the segments."),
        Column("batches", LONG, "Batches that were read."),
        Column("unreadable_bytes", LONG, "Bytes that could not be read; see quarantine."),
        Column("gap_offset", LONG, "Highest base offset that does not follow the batch before it."),
        Column(
            "segment_gap_offset",
            LONG,
            "Of a coordinator: base offset of a segment before which another one may be missing.",
        ),
        Column("overlap_offset", LONG, "Lowest offset from which segments overlap; NULL if none do."),
        Column("damaged_offset", LONG, "Highest offset below which something was unreadable."),
        Column(
            "tail",
            STRING,
            "How the newest segment ends: CLEAN, ZEROS, EMPTY_OR_CUT, TORN, UNMEASURED, CORRUPT or UNOPENED.",
        ),
        Column("is_decoded", BOOLEAN, "Whether the copy shows markers and coordinator records."),
        Column("status", STRING, "COMPLETE, PARTIAL, DAMAGED or MISSING."),
        Column("detail", STRING, "What is missing, in words."),
        Column(
            "is_gone",
            BOOLEAN,
            "If MISSING: whether the metadata log, or checkpoints with capture.json, prove that the topic is gone; NULL"
            " if they prove nothing.",
        ),
        Column("answered_at", TIMESTAMP, "When the leader was asked for its last stable offset."),
        Column("answered_stable_offset", LONG, "Last stable offset at answered_at: nothing below it was open."),
        Column("answered_high_watermark", LONG, "High watermark that the leader answered just before."),
        Column(
            "is_nothing_open",
            BOOLEAN,
            "If MISSING: whether its leader answered that nothing was open, so that its log was not fetched.",
        ),
    ),
    checks={
        "partition_is_named": are_present(*TOPIC_PARTITION),
        "status_is_known": is_one_of("status", "COMPLETE", "PARTIAL", "DAMAGED", "MISSING"),
    },
    shown={
        "coverage": (
            "topic partition broker status is_judged is_leader detail | end_offset high_watermark first_offset "
            "unreadable_bytes captured_at"
        )
    },
)

QUARANTINE: Final = Table(
    comment="The bytes and batches that could not be read or trusted, and why.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "File with the unreadable bytes."),
        Column("position", LONG, "Position of the first unreadable byte."),
        Column("length", LONG, "Number of unreadable bytes."),
        Column("reason", STRING, "Why the bytes could not be read."),
        Column("sample", STRING, "The first of the bytes, as hex or text."),
        Column("next_offset", LONG, "Offset of the first batch after these bytes; NULL if none."),
    ),
    checks={"stretch_is_located": are_present("path", "position", "length", "reason")},
)
