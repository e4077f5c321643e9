"""What each copy of a partition contains and proves."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.support.copies import NOW, assigned, captured, checkpoint, covered, epoch, noted, unreadable
from txnlib.core.copies import CopyBeside, CoverageRow, End, LeaderBasis, Role, TruncatedEpoch, known_until_ms
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import CheckpointEntry
from txnlib.core.coverage.coverage import NewestSnapshot
from txnlib.core.coverage.judged_copy import LeaderProof
from txnlib.core.coverage.leaders import PartitionLeader, leaders
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.schema import TABLES

LONG, SHORT = 20, 10
LOST = LeaderBasis.METADATA_LOG_DAMAGED

#: (copies by source, with the offset at which each ends; leader; replicas) -> role of each.
ROLES: dict[str, tuple[dict[str, int], int | None, list[int] | None, list[str]]] = {
    "each broker has a folder": ({"raw:1": LONG, "raw:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
    "the leader's folder is deeper": ({"raw:b/1/disk": LONG, "raw:b/2/disk": LONG}, 2, [1, 2], ["OTHER", "LEADER"]),
    "nobody noted the leader": ({"raw:1": LONG, "raw:2": SHORT}, None, None, ["FURTHEST", "OTHER"]),
    "no broker leads, and all replicas are there": (
        {"raw:1": SHORT, "raw:2": LONG},
        -1,
        [1, 2],
        ["OTHER", "LAST_LEADER"],
    ),
    "no broker leads, and one replica is not there": (
        {"raw:1": SHORT, "raw:2": LONG},
        -1,
        [1, 2, 3],
        ["OTHER", "OTHER"],
    ),
    "the folder names no broker, which may be any": ({"text:.": LONG}, 1, [1, 2], ["FURTHEST"]),
    "the folder names no broker, and no replicas are noted": ({"text:.": LONG}, 1, None, ["FURTHEST"]),
    "the folder names no broker, and there is one replica": ({"text:.": LONG}, 1, [1], ["LEADER"]),
    "the folder has a name of its own": ({"raw:kafka-logs": LONG}, 1, [1], ["LEADER"]),
    "a copy without a broker beside a longer one": ({"raw:1": LONG, "text:deep": SHORT}, 1, [1], ["LEADER", "OTHER"]),
    "no broker leads, and the folder names none": ({"text:.": LONG}, -1, [1], ["OTHER"]),
    "the copy of another broker": ({"raw:7": LONG}, 1, [1], ["OTHER"]),
    "a second log directory of the leader": ({"raw:1/2": LONG, "raw:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
    # Followers are never ahead of their leader, so the note is outdated.
    "a copy that is longer than the noted leader's": (
        {"raw:1": SHORT, "raw:2": LONG},
        1,
        [1, 2],
        ["OTHER", "FURTHEST"],
    ),
    "console text proves nothing": ({"raw:1": SHORT, "printed:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
}


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


def notes_of(leader: int | None, replicas: list[int] | None = None) -> list[Any]:
    return [] if leader is None else [noted(leader=leader, replicas=replicas)]


@pytest.mark.parametrize(("copies", "leader", "replicas", "expected"), ROLES.values(), ids=ROLES)
def test_the_role_of_each_copy(
    copies: dict[str, int], leader: int | None, replicas: list[int] | None, expected: list[str]
) -> None:
    segments = [captured(source=source, end=end) for source, end in copies.items()]
    assert [row.role for row in covered(*segments, partition_notes=notes_of(leader, replicas))] == expected


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        (LeaderProof(), ["CAPTURE_JSON", None, None]),
        (LeaderProof(LeaderBasis.METADATA_LOG), ["CAPTURE_JSON", None, None]),
        (LeaderProof(LeaderBasis.METADATA_LOG, hides_leaders=True), ["CAPTURE_JSON", LOST, None]),
        (LeaderProof(LOST, hides_leaders=True), ["CAPTURE_JSON", LOST, LOST]),
    ],
    ids=["no metadata log", "a whole one", "one without its begin", "a damaged one"],
)
def test_a_leader_that_nobody_names_may_be_lost_in_the_metadata_log(
    proof: LeaderProof, expected: list[str | None]
) -> None:
    """Of a note that another copy refutes, a log without its begin but with its end shows no newer leader."""
    longer = captured(source="raw:2", end=LONG)
    cases = [((captured(),), 1, [1]), ((captured(),), None, None), ((captured(end=SHORT), longer), 1, [1, 2])]
    found = [
        covered(*segments, partition_notes=notes_of(*of_notes), leader_proof=proof)[0] for segments, *of_notes in cases
    ]
    assert [row.leader_basis for row in found] == expected


#: When the copy was taken, up to when the metadata log proves leaders, leader epoch of the copy -> basis, role.
OF_METADATA = {
    "before the end of the log": (NOW, NOW, 5, ("METADATA_LOG", "LEADER")),
    "after it": (NOW + 1, NOW, 5, ("METADATA_LOG_UNCONFIRMED", "LEADER")),
    "at an instant that nobody noted": (None, NOW, 5, ("METADATA_LOG_UNCONFIRMED", "LEADER")),
    "the log has an unknown end": (NOW, None, 5, ("METADATA_LOG_UNCONFIRMED", "LEADER")),
    "a copy has a newer leader epoch": (NOW, NOW, 6, (None, "FURTHEST")),
    "before its broker led": (NOW - 10 - CLOCKS_DIFFER_MS, NOW, 5, ("METADATA_LOG", "OTHER")),
}


@pytest.mark.parametrize(("captured_at_ms", "reach_ms", "number", "expected"), OF_METADATA.values(), ids=OF_METADATA)
def test_what_the_metadata_log_proves_about_the_leader_of_a_copy(captured_at_ms, reach_ms, number, expected):
    basis = LeaderBasis.METADATA_LOG
    state = assigned("t", 1, NOW - 5, leader_epoch=5)
    (row,) = covered(
        captured(), captured_at_ms=captured_at_ms, epochs=[epoch(number, 0, 19)],
        leaders=leaders((), [state], basis, None), leader_proof=LeaderProof(basis, reach_ms),
    )  # fmt: skip
    assert (row.leader_basis, row.role) == expected


#: When the copies of the noted leader and of another broker were taken; ends of both -> whether the other refutes the
#: note.
REFUTATIONS = {
    "at the same time": (NOW, NOW, LONG, True),
    "no longer": (NOW, NOW, SHORT, False),
    "the other long before": (NOW, NOW - CLOCKS_DIFFER_MS - 1, LONG, True),
    "the other so shortly before that it may have been read after": (NOW, NOW - CLOCKS_DIFFER_MS, LONG, False),
    "the other later": (NOW, NOW + 1, LONG, False),
    "nobody knows when": (None, NOW, LONG, True),
}


@pytest.mark.parametrize(("led_ms", "other_ms", "end", "is_refuted"), REFUTATIONS.values(), ids=REFUTATIONS)
def test_a_follower_is_never_ahead_of_its_leader(led_ms: int | None, other_ms: int, end: int, is_refuted: bool) -> None:
    instants = {"2/t-0": other_ms} | ({} if led_ms is None else {"1/t-0": led_ms})
    led, _ = covered(
        captured(end=SHORT),
        captured(source="raw:2", end=end),
        partition_notes=notes_of(1, [1, 2]),
        instants=CaptureInstants(None, instants),
    )
    assert (led.leader is None) == is_refuted
    assert led.noted_leader == "1"


@pytest.mark.parametrize("captured_at_ms", [None, NOW])
@pytest.mark.parametrize("stamp_ms", [None, NOW - 5, NOW + 5])
@pytest.mark.parametrize("tail", ["CLEAN", "TORN"])
def test_up_to_when_a_copy_is_known(captured_at_ms: int | None, stamp_ms: int | None, tail: str) -> None:
    segments = [captured(source=source, newest_broker_ms=stamp_ms, tail=tail) for source in ("raw:1", "raw:2")]
    for row in covered(*segments, partition_notes=notes_of(1, [1, 2]), captured_at_ms=captured_at_ms):
        assert row.role is not None
        assert row.ends is not None
        assert row.known_until_ms == known_until_ms(row.role, row.ends, captured_at_ms, stamp_ms)
        assert row.is_instant_assumed == (captured_at_ms is None or not row.is_current)


@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(None, ("TORN", "PARTIAL")), (0, ("WHOLE", "COMPLETE")), (9, ("SHORT", "PARTIAL"))]
)
def test_a_text_without_batches_is_whole_only_by_a_high_watermark(
    high_watermark: int | None, expected: tuple[str, str]
) -> None:
    marks = [] if high_watermark is None else [checkpoint("high_watermark", high_watermark)]
    file = captured(source="text:1", end=None, first_offset=None, tail="EMPTY_OR_CUT")
    (row,) = covered(file, checkpoints=marks, partition_notes=notes_of(1, [1]))
    assert (row.ends, row.status) == expected
    assert row.is_current == (high_watermark == 0)


#: Checkpoints by broker, each with its high watermark and the instant at which it was copied -> the one that counts at
#: NOW.
HIGH_WATERMARKS = {
    "the highest of all brokers": ({"1": (5, NOW), "2": (9, NOW)}, 9),
    "none that was copied later": ({"1": (5, NOW), "2": (9, NOW + 1)}, 5),
    "one of an unknown instant": ({"1": (5, NOW), "2": (9, None)}, 9),
}


@pytest.mark.parametrize(("marks", "expected"), HIGH_WATERMARKS.values(), ids=HIGH_WATERMARKS)
def test_which_high_watermark_counts(marks: dict[str, tuple[int, int | None]], expected: int) -> None:
    noted_ms = {f"{broker}/replication-offset-checkpoint": ms for broker, (_, ms) in marks.items() if ms is not None}
    (row,) = covered(
        captured(),
        checkpoints=[checkpoint("high_watermark", mark, source=f"raw:{broker}") for broker, (mark, _) in marks.items()],
        instants=CaptureInstants(None, {**noted_ms, "1/t-0": NOW}),
    )
    assert row.noted_high_watermark == expected


def test_a_newer_leader_truncates_what_is_at_or_above_its_first_offset() -> None:
    """Its high watermark counts only up to there."""
    copies = captured(), captured(source="raw:2", end=15)
    epochs = [epoch(1, 0, 19), epoch(1, 0, 9, source="raw:2"), epoch(2, 10, 14, source="raw:2")]
    cut, kept = covered(
        *copies, epochs=epochs, checkpoints=[checkpoint("high_watermark", 20), checkpoint("leader_epoch", 1, start=0)]
    )
    assert (cut.truncated, cut.survives_until, cut.noted_high_watermark) == (
        (TruncatedEpoch(leader_epoch=1, from_offset=10),),
        10,
        10,
    )
    assert (cut.leader_epoch, cut.checkpoint_leader_epoch, cut.ends) == (1, 1, End.WHOLE)
    assert (kept.truncated, kept.survives_until, kept.is_judged) == (None, 15, True)
    assert "a newer leader truncated some of its batches" in str(cut.detail)


def test_the_leader_epoch_that_is_noted_counts_as_that_of_the_leaders_checkpoint() -> None:
    """A copy over the wire has no checkpoint; its brokers said which epoch it was."""
    copies = captured(), captured(source="raw:2", end=15)
    epochs = [epoch(1, 0, 19), epoch(1, 0, 14, source="raw:2")]
    led, other = covered(*copies, epochs=epochs, partition_notes=[noted(leader=1, noted_leader_epoch=2)])
    assert (led.leader_epoch, led.checkpoint_leader_epoch, other.checkpoint_leader_epoch) == (1, 2, None)
    led, _ = covered(
        *copies,
        epochs=epochs,
        partition_notes=[noted(leader=1, noted_leader_epoch=2)],
        checkpoints=[checkpoint("leader_epoch", 3, start=20)],
    )
    assert led.checkpoint_leader_epoch == 3


def test_the_lowest_first_offset_of_any_higher_epoch_counts() -> None:
    copies = captured(), captured(source="raw:2", end=15), captured(source="raw:3", end=18)
    epochs = [
        epoch(1, 0, 19),
        epoch(2, 12, 14, source="raw:2"),
        epoch(3, 10, 17, source="raw:3"),
        epoch(4, 18, 18, source="raw:3"),
    ]
    assert [
        [(cut.leader_epoch, cut.from_offset) for cut in row.truncated or ()] for row in covered(*copies, epochs=epochs)
    ] == [
        [(1, 10)],
        [(2, 10)],
        [],
    ]


def test_of_the_brokers_that_were_in_sync_last_the_furthest_would_lead() -> None:
    named = {("t", 0): PartitionLeader(leader="-1", replicas=("1", "2", "3"), in_sync=("1", "2"))}
    copies = captured(end=15), captured(source="raw:2", end=SHORT), captured(source="raw:4", end=LONG)
    assert [row.role for row in covered(*copies, leaders=named)] == ["LAST_LEADER", "OTHER", "OTHER"]


def test_a_copy_that_ends_below_its_own_leader_epoch_checkpoint_is_short() -> None:
    (row,) = covered(captured(), epochs=[epoch(1, 0, 19)], checkpoints=[checkpoint("leader_epoch", 2, start=21)])
    assert (row.ends, row.detail) == (End.SHORT, "ends below what its own checkpoints note")


#: The copies of a partition, the one to judge first.
JUDGED = {
    "undamaged": (captured(end=SHORT), captured(source="raw:2", unreadable=(unreadable(),))),
    "printed in full": (captured(end=SHORT), captured(source="raw:2", is_decoded=False)),
    "longest": (captured(), captured(source="raw:2", end=SHORT)),
    "raw": (captured(source="raw:2"), captured(source="text:1")),
    "by name": (captured(), captured(source="raw:2")),
}


@pytest.mark.parametrize("copies", JUDGED.values(), ids=JUDGED)
def test_which_copy_is_judged(copies: tuple[Any, Any]) -> None:
    for given in (copies, copies[::-1]):
        assert [row.source for row in covered(*given) if row.is_judged] == [copies[0].source]


def test_the_leaders_copy_is_judged_unless_it_is_short() -> None:
    leader = notes_of(2, [1, 2])
    assert [row.is_judged for row in covered(captured(), captured(source="raw:2"), partition_notes=leader)] == [
        False,
        True,
    ]
    mark = [checkpoint("high_watermark", LONG)]
    copies = captured(tail="TORN"), captured(source="raw:2", end=SHORT)
    assert [row.is_judged for row in covered(*copies, partition_notes=leader, checkpoints=mark)] == [True, False]


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


# ---- Copies of which only files beside the log were captured


def beside(*checkpoints: CheckpointEntry, instants: CaptureInstants | None = None) -> CoverageRow:
    """The judged copy of a partition that broker 1 leads, in leader epoch 3 up to offset 20."""
    own = [epoch(3, 0, 19)]
    notes = [noted(leader=1, replicas=[1, 2])]
    instants = CaptureInstants(NOW) if instants is None else instants
    (row,) = covered(
        captured(), checkpoints=checkpoints, epochs=own, partition_notes=notes, instants=instants,
        newest_snapshots=[NewestSnapshot("t", 0, "raw:3", 30)],
    )  # fmt: skip
    return row


def of_2(number: int, start: int) -> CheckpointEntry:
    return checkpoint("leader_epoch", number, source="raw:2", start=start)


def test_a_checkpoint_alone_refutes_the_note_of_a_leader_that_does_not_know_its_epoch():
    row = beside(of_2(3, 0), of_2(4, 20))
    assert (row.role, row.leader) == (Role.OTHER, None)
    assert row.copies_beside == (CopyBeside("raw:2", "2", 4, 20), CopyBeside("raw:3", "3"))


@pytest.mark.parametrize("epochs", [(of_2(3, 0),), (of_2(3, 19),), (of_2(2, 40),)])
def test_a_checkpoint_that_knows_no_more_refutes_nothing(epochs):
    assert beside(*epochs).role == Role.LEADER


def test_a_checkpoint_that_reaches_beyond_the_leaders_end_refutes_it():
    assert beside(of_2(3, 21)).role == Role.OTHER


def test_a_checkpoint_that_was_copied_later_refutes_no_note():
    later = CaptureInstants(NOW, {"2/t-0": NOW + 600_000})
    row = beside(of_2(4, 20), instants=later)
    assert (row.role, [each.leader_epoch for each in row.copies_beside or ()]) == (Role.LEADER, [4, None])


def test_a_checkpoint_of_another_topic_id_says_nothing():
    ids = [checkpoint("topic_id", "A"), checkpoint("topic_id", "B", source="raw:2")]
    row = beside(of_2(4, 20), *ids)
    assert (row.role, row.copies_beside) == (Role.LEADER, (CopyBeside("raw:3", "3"),))


def test_what_a_newer_leader_truncated_is_known_of_a_copy_without_its_log():
    (found, _) = beside(of_2(2, 0)).copies_beside or ()
    assert (found.leader_epoch, found.overtaken_from) == (2, 0)


def test_a_second_copy_in_the_making_is_never_the_leaders():
    notes = [noted(leader=1, replicas=[1])]
    rows = covered(captured(end=20), captured(source="raw:1/-future", end=30, kind="raw"), partition_notes=notes)
    assert [(row.broker, row.role, row.is_judged, row.status) for row in rows] == [
        ("1", Role.LEADER, True, "COMPLETE"),
        ("1", Role.OTHER, False, "COMPLETE"),
    ]
    (alone,) = covered(captured(source="raw:1/-future", kind="raw"), partition_notes=notes)
    assert (alone.role, alone.is_current, alone.detail) == (
        Role.OTHER, False, "a second copy in the making, on another disk"
    )  # fmt: skip
