"""Which copy of a partition is its leader's, and which is judged."""

from typing import Any

import pytest

from tests.support.copies import NOW, assigned, captured, checkpoint, covered, epoch, noted, unreadable
from txnlib.core.copies import CopyBeside, CoverageRow, End, LeaderBasis, Role, TruncatedEpoch, known_until_ms
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import CheckpointEntry
from txnlib.core.coverage.coverage import NewestSnapshot
from txnlib.core.coverage.judged_copy import LeaderProof
from txnlib.core.coverage.leaders import PartitionLeader, leaders
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS

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
