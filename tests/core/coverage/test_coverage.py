"""What each copy of a partition contains and proves."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.support.copies import NOW, captured, checkpoint, covered, epoch, noted, unreadable
from txnlib.core.copies import CoverageRow, End, LeaderBasis, Role
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.coverage import NewestSnapshot
from txnlib.core.coverage.leaders import PartitionLeader
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.schema import TABLES

LONG, SHORT = 20, 10

#: Segments of a copy -> some columns of its row.
EXTENTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "segments in order": (
        [captured(end=10), captured(base=10, end=LONG)],
        {"end_offset": 20, "bytes": 2, "status": "COMPLETE"},
    ),
    "a segment is missing": (
        [captured(end=8), captured(base=10)],
        {"gap_offset": 10, "detail": "offsets missing between segments", "status": "PARTIAL"},
    ),
    "the cleaner took the first records of a segment": (
        [captured(end=10), captured(base=10, first_offset=12, last_gap_offset=11)],
        {"gap_offset": 12, "status": "COMPLETE"},
    ),
    "two segments are missing": ([captured(end=5), captured(base=7, end=9), captured(base=12)], {"gap_offset": 12}),
    "the cleaner left holes": (
        [captured(end=8, last_gap_offset=3), captured(base=10)],
        {"gap_offset": 10, "detail": None, "status": "COMPLETE"},
    ),
    "segments overlap": ([captured(end=12), captured(base=10)], {"overlap_offset": 10}),
    "two log directories have a segment": ([captured(), captured(path="other")], {"overlap_offset": 0, "bytes": 1}),
    "a dump prints a segment twice": (
        [
            captured(source="text:1", end=5, tail="TORN", last_gap_offset=3),
            captured(source="text:1", bytes=7, batches=8, last_gap_offset=4),
        ],
        {"overlap_offset": None, "end_offset": 20, "tail": "CLEAN", "bytes": 7, "batches": 8, "gap_offset": 4},
    ),
    "two texts have a segment, which may be of two logs": (
        [captured(source="text:1"), captured(source="text:1", path="other")],
        {"overlap_offset": 0, "end_offset": 20, "bytes": 1},
    ),
    "prose between the lines of a dump": (
        [captured(source="text:1", unreadable=(replace(unreadable(), reason="NOT_DUMP_TEXT"),))],
        {"damaged_offset": None, "unreadable_bytes": 0, "status": "COMPLETE"},
    ),
    "an unreadable stretch": (
        [captured(unreadable=(unreadable(7),))],
        {"damaged_offset": 7, "unreadable_bytes": 9, "status": "DAMAGED", "detail": "damaged stretches"},
    ),
    "one at the end of a segment": (
        [captured(end=8, unreadable=(unreadable(),)), captured(base=10)],
        {"damaged_offset": 10, "status": "DAMAGED"},
    ),
    "the end of a log that was being written": (
        [captured(tail="TORN", unreadable=(unreadable(reason="INCOMPLETE_BATCH"),))],
        {"damaged_offset": None, "unreadable_bytes": 9, "status": "PARTIAL", "ends": End.TORN},
    ),
    "a cut segment that is not the last": (
        [captured(end=8, tail="TORN", unreadable=(unreadable(reason="INCOMPLETE_BATCH"),)), captured(base=10)],
        {"damaged_offset": 10, "status": "DAMAGED"},
    ),
    # Brokers trim a preallocated segment when they roll it.
    "zeros at the end of a segment that is not the last": (
        [captured(end=8, tail="ZEROS"), captured(base=10)],
        {"damaged_offset": 10, "status": "DAMAGED"},
    ),
    "nothing but zeros": (
        [captured(end=None, first_offset=None, batches=0, tail="ZEROS"), captured(base=10)],
        {"gap_offset": 10, "damaged_offset": 10},
    ),
    # The cleaner may leave an empty segment, whose text has nothing but first lines.
    "a text of nothing but first lines, and another": (
        [
            captured(source="text:1", end=None, first_offset=None, tail="EMPTY_OR_CUT"),
            captured(source="text:1", base=10),
        ],
        {"gap_offset": 10, "status": "PARTIAL"},
    ),
    "zeros at the end of the last segment": (
        [captured(end=10), captured(base=10, tail="ZEROS")],
        {"damaged_offset": None, "status": "COMPLETE"},
    ),
    "an empty segment that is not the last": (
        [captured(end=None, first_offset=None, batches=0), captured(base=10)],
        {"gap_offset": 10, "status": "PARTIAL"},
    ),
    "a stretch without records": (
        [captured(unreadable=(unreadable(7, reason="NOT_DUMP_TEXT: x"),))],
        {"damaged_offset": None, "unreadable_bytes": 9, "status": "COMPLETE"},
    ),
    "an unbelievable end": ([captured(tail="CORRUPT")], {"status": "DAMAGED", "ends": End.SHORT}),
    "a time that no clock shows": ([captured(newest_broker_ms=1 << 60)], {"newest_stamp_ms": None}),
    "a coordinator's first segments": (
        [captured(TRANSACTION_STATE_TOPIC, base=10)],
        {"detail": "its first segments are missing", "status": "PARTIAL"},
    ),
    "a coordinator's text whose first lines are cut off": (
        [
            captured(TRANSACTION_STATE_TOPIC, "text:1", 30, None, first_offset=21),
            captured(TRANSACTION_STATE_TOPIC, "text:1", 40, 30),
        ],
        {
            "log_start_offset": 21,
            "detail": "its first segments are missing",
            "status": "PARTIAL",
            "shows_absence": False,
        },
    ),
    "a text that does not name its first segment, which is whole": (
        [
            captured(TRANSACTION_STATE_TOPIC, "text:1", 30, None, first_offset=0),
            captured(TRANSACTION_STATE_TOPIC, "text:1", 40, 30),
        ],
        {"log_start_offset": 0, "detail": None, "status": "COMPLETE", "shows_absence": True},
    ),
    "console text": (
        [captured(TRANSACTION_STATE_TOPIC, "console:1", None, None, kind="printed", tail="TORN")],
        {"tail": None, "ends": End.TORN, "detail": "a console consumer's text, which does not tell where it began"},
    ),
}


@pytest.mark.parametrize(("segments", "expected"), EXTENTS.values(), ids=EXTENTS)
def test_what_the_segments_of_a_copy_show(segments: list[Any], expected: dict[str, Any]) -> None:
    for given in (segments, segments[::-1]):
        (row,) = covered(*given)
        assert {name: getattr(row, name) for name in expected} == expected


HOLED = [captured(TRANSACTION_STATE_TOPIC, end=8), captured(TRANSACTION_STATE_TOPIC, base=10)]
EMPTIED = captured(TRANSACTION_STATE_TOPIC, end=None, first_offset=None, batches=0)
#: Segments of a coordinator's copy, and offsets in its broker's `cleaner-offset-checkpoint` by topic -> the offset
#: below which records are lost.
UNCLEANED: dict[str, tuple[list[Any], dict[str | None, int | None], int | None]] = {
    "the cleaner took the end of a segment": (HOLED, {TRANSACTION_STATE_TOPIC: 10}, None),
    "it has not been there: a segment is missing": (HOLED, {TRANSACTION_STATE_TOPIC: 8}, 10),
    "it has never cleaned this log": (HOLED, {"t": 5}, 10),
    "it has never cleaned any log": (HOLED, {None: None}, 10),
    "the cleaner left an empty segment": ([EMPTIED, HOLED[1]], {TRANSACTION_STATE_TOPIC: 10}, None),
    "it was not there, and a segment is empty": ([EMPTIED, HOLED[1]], {TRANSACTION_STATE_TOPIC: 0}, 10),
    "nobody copied how far it was": (HOLED, {}, None),
    "a replica of a cleaned log": (
        [captured(TRANSACTION_STATE_TOPIC, end=8), captured(TRANSACTION_STATE_TOPIC, base=8, first_offset=10)],
        {"t": 5},
        None,
    ),
}


@pytest.mark.parametrize(("segments", "cleaned", "expected"), UNCLEANED.values(), ids=UNCLEANED)
def test_a_hole_that_the_cleaner_did_not_leave_is_a_missing_segment(segments, cleaned, expected) -> None:
    entries = [checkpoint("cleaner_offset", offset, topic) for topic, offset in cleaned.items()]
    mark = checkpoint("high_watermark", LONG, TRANSACTION_STATE_TOPIC)
    (row,) = covered(*segments, checkpoints=[*entries, mark])
    is_lost = expected is not None
    assert (row.damaged_offset, row.shows_absence) == (expected, not is_lost)
    assert (row.status, row.detail) == (
        ("DAMAGED", "offsets missing between segments") if is_lost else ("COMPLETE", None)
    )


@pytest.mark.parametrize(("copied_ms", "is_lost"), [(NOW - 1, False), (NOW, True), (NOW + 1, True)])
def test_the_cleaner_may_have_gone_on_since_its_checkpoint_was_copied(copied_ms: int, is_lost: bool) -> None:
    cleaned = checkpoint("cleaner_offset", 8, TRANSACTION_STATE_TOPIC)
    instants = CaptureInstants(NOW, {"1/replication-offset-checkpoint": copied_ms})
    (row,) = covered(*HOLED, checkpoints=[cleaned], instants=instants)
    assert ((row.status == "DAMAGED"), row.segment_gap_offset) == (is_lost, 10)


def test_no_segment_is_missing_below_what_a_cleaner_has_cleaned():
    found = [
        covered(*HOLED, checkpoints=[checkpoint("cleaner_offset", at, TRANSACTION_STATE_TOPIC)])[0]
        for at in (9, 10, 11)
    ]
    assert [row.segment_gap_offset for row in found] == [10, None, None]
    assert covered(*HOLED)[0].segment_gap_offset == 10, "no checkpoint of the cleaner was copied"
    assert covered(captured(end=8), captured(base=10))[0].segment_gap_offset is None, (
        "any other partition has gap_offset"
    )


def test_a_row_has_every_column_of_its_table() -> None:
    assert [field.name.removesuffix("_ms") for field in fields(CoverageRow)] == list(TABLES["coverage"].names)


def test_a_file_in_no_partition_s_folder_is_no_copy() -> None:
    assert not covered(captured(partition=None), captured(kind="unknown"))


#: First segment of the copy, and log start that the leader answered and where the capture began -> whether the copy
#: begins by choice, and its log start.
BEGINS = {
    "nobody was asked": (100, None, (False, 100)),
    "it begins where the capture chose": (100, (0, 100), (True, 0)),
    "it is whole": (0, (0, 0), (False, 0)),
    "what is older was deleted": (100, (100, 100), (False, 100)),
    "a segment is missing": (150, (0, 100), (False, 150)),
}


@pytest.mark.parametrize(("first", "said", "expected"), BEGINS.values(), ids=BEGINS)
def test_a_copy_that_begins_by_choice_has_the_log_start_of_its_leader(first, said, expected):
    answer = {} if said is None else {"log_start_offset": said[0], "fetched_from": said[1], "answered_at_ms": NOW}
    (row,) = covered(captured(base=first, end=200), partition_notes=[noted(leader=1, **answer)])
    assert ("by scope" in (row.detail or ""), row.log_start_offset) == expected


#: Topic, where the copy begins, its newest snapshot, what its leader answered -> where nothing shows what was open.
HIDDEN: list[tuple[str, int, int | None, dict[str, int], int | None]] = [
    ("t", 0, None, {}, None),
    ("t", 4, None, {}, 4),
    ("t", 4, 3, {}, 4),
    ("t", 4, 4, {}, None),
    ("t", 4, 9, {}, None),
    ("t", 4, None, {"last_stable_offset": 4, "answered_at_ms": NOW}, None),
    ("t", 4, None, {"last_stable_offset": 3, "answered_at_ms": NOW}, 4),
    ("t", 4, None, {"last_stable_offset": 4}, 4),
    (TRANSACTION_STATE_TOPIC, 4, None, {}, None),
]


@pytest.mark.parametrize(("topic", "begins", "snapshot", "answers", "expected"), HIDDEN)
def test_what_was_open_where_a_copy_begins_is_shown_by_a_snapshot_or_an_answer(
    topic, begins, snapshot, answers, expected
) -> None:
    segment = captured(topic, base=begins)
    snapshots = [] if snapshot is None else [NewestSnapshot(topic, 0, "raw:1", snapshot)]
    (row,) = covered(segment, newest_snapshots=snapshots, partition_notes=[noted(topic, **answers)])
    assert row.hidden_below == expected


#: Last stable offset and high watermark that the leader answered -> whether that proves that nothing is open.
ANSWERS = {
    "nobody was asked": ({}, None),
    "nothing is open": ({"last_stable_offset": 50, "high_watermark": 50, "answered_at_ms": NOW}, True),
    "something is open": ({"last_stable_offset": 40, "high_watermark": 50, "answered_at_ms": NOW}, None),
    "it is empty": ({"last_stable_offset": 0, "high_watermark": 0, "answered_at_ms": NOW}, True),
    "it did not say": ({"high_watermark": 50, "answered_at_ms": NOW}, None),
    "nobody knows when": ({"last_stable_offset": 5, "high_watermark": 5}, None),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_only_the_leaders_word_proves_that_nothing_is_open(answer: dict[str, int], expected: bool | None) -> None:
    (row,) = covered(partition_notes=[noted(leader=1, **answer)], expected=[("t", 0)])
    assert row.is_nothing_open == expected
    assert str(row.detail).startswith(
        "nothing was open at 2023-11-14T22:13:20Z, by the word of broker 1: "
        if expected
        else "not captured; broker 1 leads it"
    )


def test_of_several_answers_the_one_before_counts() -> None:
    """What was appended after the leader answered its last stable offset does not count."""
    answer = noted(leader=1, last_stable_offset=5, high_watermark=9, high_watermark_before=7, answered_at_ms=NOW)
    (row,) = covered(captured(), partition_notes=[answer])
    assert (row.answered_at_ms, row.answered_stable_offset, row.answered_high_watermark) == (NOW, 5, 7)


#: Replicas by partition, as capture.json names them.
NOTED = {("orders", 0): [1, 2], ("orders", 1): [2]}
#: The same by broker, as the checkpoints list them.
LISTED = {1: [("orders", 0)], 2: [("orders", 0), ("orders", 1)]}
MISSING = [("gone", 0), ("gone", 1), ("orders", 7), (TRANSACTION_STATE_TOPIC, 3)]
Listed = dict[int, list[tuple[str, int]]]


def missing(
    notes: dict[tuple[str, int], list[int]], listed: Listed, **given: Any
) -> dict[tuple[str, int], CoverageRow]:
    marks = [
        replace(checkpoint("high_watermark", 5, topic, f"raw:brokers/{broker}"), partition=partition)
        for broker, held in listed.items()
        for topic, partition in held
    ]
    noted_partitions = [
        replace(noted(topic, 1, held), partition=partition) for (topic, partition), held in notes.items()
    ]
    rows = covered(checkpoints=marks, partition_notes=noted_partitions, expected=[*notes, *MISSING], **given)
    assert {row.status for row in rows} == {"MISSING"}
    assert len(rows) == len({(row.topic, row.partition) for row in rows})
    return {(row.topic, row.partition): row for row in rows}


def test_a_topic_that_neither_names_is_gone_and_a_partition_of_a_known_topic_is_not() -> None:
    rows = missing(NOTED, LISTED)
    assert {place: row.detail for place, row in rows.items()} == {
        **dict.fromkeys(NOTED, "not captured; broker 1 leads it"),
        **dict.fromkeys([("orders", 7), (TRANSACTION_STATE_TOPIC, 3)], "not captured"),
        **dict.fromkeys([("gone", 0), ("gone", 1)], "its topic no longer exists"),
    }
    assert {(row.is_gone, row.checkpointed_at_ms) for row in rows.values()} == {(True, NOW), (None, None)}
    assert rows["orders", 0].high_watermark == 5


@pytest.mark.parametrize(
    ("notes", "listed"),
    [
        pytest.param(NOTED, {2: LISTED[2]}, id="a broker was not captured"),
        pytest.param(NOTED, {1: LISTED[1], 2: [("orders", 1)]}, id="one of its log directories was not"),
        pytest.param({("orders", 0): [1, 2]}, LISTED, id="the notes are of a selection"),
        pytest.param({}, LISTED, id="there are no notes"),
        pytest.param({}, {}, id="there is nothing"),
        pytest.param(NOTED | {("gone", 0): [1]}, LISTED, id="only the notes name it"),
    ],
)
def test_where_one_names_what_the_other_does_not_nothing_is_said(
    notes: dict[tuple[str, int], list[int]], listed: Listed
) -> None:
    assert not [row for row in missing(notes, listed).values() if row.is_gone]


def test_a_whole_metadata_log_proves_that_a_partition_is_gone() -> None:
    by_log = {("orders", 7): PartitionLeader(leader="2", leader_basis=LeaderBasis.METADATA_LOG, assigned_leader="2")}
    rows = missing({}, {}, leaders=by_log, whole_metadata_ms=NOW - 9)
    assert {place for place, row in rows.items() if row.is_gone} == {("gone", 0), ("gone", 1)}
    assert rows["gone", 0].checkpointed_at_ms == NOW - 9
    assert rows["orders", 7].detail == "not captured; broker 2 leads it"


def test_a_partition_without_a_leader_names_those_that_were_in_sync_last() -> None:
    named = {("t", 0): PartitionLeader(leader="-1", in_sync=("2", "3"))}
    (row,) = covered(expected=[("t", 0)], leaders=named)
    assert row.detail == "not captured; no broker leads it; in sync last: 2, 3"


def test_a_copy_of_a_deleted_topic_is_not_judged_and_proves_nothing_about_the_others() -> None:
    copies = captured(end=SHORT), captured(source="raw:2", end=LONG)
    marks = [checkpoint("high_watermark", LONG, source="raw:2"), checkpoint("topic_id", "old", source="raw:2")]
    epochs = [epoch(1, 0, 9), epoch(2, 0, 19, source="raw:2")]
    deleted, living = covered(*copies, checkpoints=marks, epochs=epochs, deleted_copies={("t", 0, "raw:2")})
    assert (deleted.is_deleted, deleted.is_judged, deleted.status, deleted.topic_id) == (True, False, "PARTIAL", "old")
    assert (deleted.role, deleted.end_offset, deleted.high_watermark) == (Role.OTHER, LONG, LONG)
    assert (living.is_deleted, living.is_judged, living.status) == (False, True, "COMPLETE")
    assert (living.truncated, living.noted_high_watermark) == (None, None)


def test_an_instant_belongs_to_a_copy_then_to_its_broker_then_to_all() -> None:
    instants = CaptureInstants(1, {"1/first/t-0": 2, "1/t-0": 3, "2/other-0": 4})
    taken = [instants.of_copy(source, "t", 0) for source in ("raw:x/1/first", "raw:1", "raw:1/second", "raw:2")]
    assert taken == [2, 3, 3, 1]


def test_checkpoints_are_copied_before_the_partitions_of_their_broker() -> None:
    noted_ms = {
        "1/replication-offset-checkpoint": 9, "1/t-0": 5, "2/t-0": 7, "2/u-0": 6, "2/__transaction_state-0": 1,
        "2/first/t-0": 1,
    }  # fmt: skip
    assert CaptureInstants(3, noted_ms).of_high_watermarks() == {"1": 9, "2": 6}
