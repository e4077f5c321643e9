"""What lies beside the judged copies refutes a proof, or completes it.

Other copies, notes, answers and texts, each beside a control. More of tests/jobs/test_refuted_proofs.py.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import HOUR, MINUTE, NOON, Cluster, Copy, id_in
from tests.support.refutations import (
    END,
    NO_COORDINATOR,
    OF_4_1,
    OPEN_NOW,
    Kit,
    audits,
    cases,
    kraft,
    one_leader,
    refuted,
    safe,
    unsafe,
    with_metadata,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, built, wrong
from txnlib.core.kafka.transaction_state import TransactionState

pytestmark = pytest.mark.shares("kits")

BESIDE = Schedules()


def late(s: Story, *beats: int, at: int = 3 * MINUTE, **changes: Any) -> None:
    """Written after its COMMIT marker."""
    s.note("Empty", 0)
    s.transaction(MINUTE)
    s.write(at, **changes)
    s.beat(0, *(beats or (10 * MINUTE, 100 * MINUTE)))
    one_leader(s)


# ---- A later copy of a follower


def followed_until(written: int | None, epoch: int = 0) -> Schedule:
    """The leader was copied after an hour, its coordinator after two, a follower after three: the producer wrote on."""

    def of(s: Story) -> Expected:
        late(s, 10 * MINUTE, 50 * MINUTE, 150 * MINUTE)
        if written is not None:
            s.write(written, epoch)
        s.copied(Copy(1, HOUR, taken=HOUR, leader_epochs=((0, 0),)), Copy(2, END))
        s.coordinator(Copy(1, 2 * HOUR, taken=2 * HOUR))
        return safe(s) if written is None else refuted(s, fails=OPEN_NOW)

    return of


BESIDE |= {
    "later_copy_with_another_batch": followed_until(140 * MINUTE),
    "later_copy_with_a_batch_of_the_next_epoch": followed_until(140 * MINUTE, 1),
    "later_copy_with_no_other_batch": followed_until(None),
}


def closed_in_a_copy_of(topic_id: str) -> Schedule:
    """A follower was copied later, and has a marker by hand; the judged copy has a topic id, or none is known."""

    def of(s: Story) -> Expected:
        late(s, 10 * MINUTE, 30 * MINUTE)
        s.c.mark(s.place, s.pid, 0, "ABORT", 100 * MINUTE)
        s.beat(110 * MINUTE)
        judged_id = NEW if topic_id == OLD else None
        judged = Copy(1, HOUR, taken=HOUR, leader_epochs=((0, 0),), topic_id=judged_id)
        s.copied(judged, Copy(2, END, topic_id=topic_id))
        return safe(s) if topic_id == OLD else s.expect(None, or_verdict="UNKNOWN")

    return of


OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
BESIDE |= {
    "marker_in_a_later_copy_whose_topic_id_may_be_the_same": closed_in_a_copy_of(NEW),
    "marker_in_a_later_copy_of_another_topic_id": closed_in_a_copy_of(OLD),
}


# ---- A write on another partition after the coordinator's copy


def sibling_at(written: int, *, is_safe: bool) -> Schedule:
    def of(s: Story) -> Expected:
        late(s)
        s.c.write((s.topic, 1), s.pid, 0, written)
        s.beat(written - MINUTE, written + MINUTE, partition=1)
        s.coordinator(Copy(1, 2 * HOUR, taken=2 * HOUR))
        return safe(s) if is_safe else refuted(s, fails=NO_COORDINATOR)

    return of


BESIDE |= {
    "sibling_that_was_written_after_the_coordinators_copy": sibling_at(140 * MINUTE, is_safe=False),
    "sibling_that_was_written_before_the_coordinators_copy": sibling_at(20 * MINUTE, is_safe=True),
}


# ---- High watermarks


def marked(answered: int | None, at: int, *, is_safe: bool, noted: int | None = None) -> Schedule:
    """The first open batch is at offset 4, the end at 9. The leader's checkpoint is missing, if a follower's is
    `noted`; else its answer is."""

    def of(s: Story) -> Expected:
        late(s)
        if noted is not None:
            s.copied(Copy(1, END, is_checkpointed=False, leader_epochs=((0, 0),)))
            s.c.noted.append((3, s.place, noted))
        if answered is not None:
            s.c.answers[s.place] = {"high_watermark": answered, "answered_at_ms": NOON + at}
        return safe(s) if is_safe else refuted(s, fails=OPEN_NOW)

    return of


BESIDE |= {
    "answered_high_watermark_above_the_end": marked(50, END, is_safe=False),
    "answered_high_watermark_after_the_copy": marked(50, END + HOUR, is_safe=True),
    "high_watermark_of_a_follower_above_the_start": marked(None, END, noted=5, is_safe=True),
    "high_watermark_of_a_follower_at_the_start": marked(None, END, noted=4, is_safe=False),
    "answered_high_watermark_above_the_start": marked(5, END, noted=4, is_safe=True),
}


# ---- A transaction that only an older copy of the coordinator shows


def gone(*, running: bool) -> Schedule:
    """The leader's log of the coordinator has no record of the id, and an older copy its last one."""

    def of(s: Story) -> Expected:
        other = [(s.topic, 1)]
        late(s, 30 * MINUTE, 100 * MINUTE, at=22 * MINUTE)
        if running:
            s.note("Ongoing", 20 * MINUTE, [s.place])
        else:
            s.begin(20 * MINUTE, other)
            s.end(21 * MINUTE, start=20 * MINUTE, places=other)
            s.beat(0, 100 * MINUTE, partition=1)
        for at in (40, 50):
            s.c.note(id_in(s.number, f"other-{s.topic}"), "Empty", s.pid + 400, 0, (), at * MINUTE)
        s.coordinator(Copy(2, 25 * MINUTE, taken=25 * MINUTE), Copy(1, END, keep=lambda e: e.key != s.id))
        return refuted(s, fails=NO_COORDINATOR) if running else safe(s)

    return of


BESIDE |= {
    "running_transaction_that_only_an_older_copy_shows": gone(running=True),
    "completed_transaction_that_only_an_older_copy_shows": gone(running=False),
}


# ---- A client's clock that a broker's stamp behind it refutes


def stamped(behind: int, *, is_safe: bool) -> Schedule:
    """The client says ten minutes after the coordinator's copy; the first stamp behind it."""

    def of(s: Story) -> Expected:
        late(s, 80 * MINUTE, behind, 160 * MINUTE, at=behind - 5 * MINUTE, stamp=130 * MINUTE)
        s.coordinator(Copy(1, 2 * HOUR, taken=2 * HOUR))
        return safe(s) if is_safe else s.expect("UNKNOWN", reason="CAPTURE_SKEW")

    return of


BESIDE |= {
    "client_ahead_before_a_stamp_that_precedes_the_coordinators_copy": stamped(95 * MINUTE, is_safe=True),
    "client_ahead_before_a_stamp_that_follows_the_coordinators_copy": stamped(150 * MINUTE, is_safe=False),
}


# ---- Leaders by capture.json and by the metadata log

NOTED = Schedules()


def noted_leader(of_metadata: int, *, is_coordinators: bool = False) -> Schedule:
    """capture.json names broker 1, and the metadata log this one, since hours before."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        late(s)
        topic, partition = ("__transaction_state", s.number) if is_coordinators else s.place
        log.elect(topic, of_metadata, -4 * HOUR, partition=partition)
        if of_metadata == 1:
            return safe(s)
        if is_coordinators:
            return unsafe(s, fails=NO_COORDINATOR)
        return unsafe(s, fails=OPEN_NOW, finds=("CAPTURE_JSON_CONTRADICTED",))

    return of


NOTED |= {
    "noted_leader_that_the_metadata_log_contradicts": noted_leader(2),
    "noted_leader_that_the_metadata_log_confirms": noted_leader(1),
}
NOTED["noted_coordinator_that_the_metadata_log_contradicts"] = noted_leader(2, is_coordinators=True)


def notes(schedules: Schedules) -> dict[str, Any]:
    """Of the partitions of schedules, and of their last coordinator partition."""
    folders = [*(f"{name.replace('_', '-')}-0" for name in schedules), f"__transaction_state-{len(schedules) - 1}"]
    return OF_4_1 | {"partitions": {folder: {"leader": 1, "replicas": [1, 2]} for folder in folders}}


def all_checkpoints_at_the_end(c: Cluster) -> None:
    c.instants |= {f"{broker}/replication-offset-checkpoint": END for broker in (1, 2)}


KITS = {
    "beside": Kit(BESIDE, then=all_checkpoints_at_the_end),
    "noted": Kit(NOTED, notes=notes(NOTED), cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_lies_beside_the_judged_copies_counts(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}


# ---- Console text beside a coordinator's segments


def printed(s: Story, state: TransactionState, at: int) -> str:
    """A line of the console consumer: the last record of the id."""
    is_running = state is TransactionState.ONGOING
    data = {
        "producerId": s.pid, "producerEpoch": 0, "transactionTimeoutMs": 60_000, "transactionStatus": int(state),
        "transactionPartitions": [{"topic": s.topic, "partitionIds": [0]}] if is_running else [],
        "transactionLastUpdateTimestampMs": NOON + at, "transactionStartTimestampMs": NOON + at,
    }  # fmt: skip
    key = {"type": 0, "data": {"transactionalId": s.id}}
    return json.dumps({"key": key, "value": {"version": 0, "data": data}}, separators=(",", ":"))


def beside_console_text(s: Story, lines: list[str], state: TransactionState, at: int) -> Expected:
    """The coordinator's segments were copied after an hour."""
    late(s, 10 * MINUTE)
    s.copied(Copy(1, 50 * MINUTE, taken=50 * MINUTE, leader_epochs=((0, 0),)))
    s.coordinator(Copy(1, HOUR, taken=HOUR))
    lines.append(printed(s, state, at))
    return unsafe(s, fails=NO_COORDINATOR, says="console text") if at > HOUR else safe(s)


def test_a_newer_console_text_shows_that_a_coordinators_copy_is_outdated(tmp_path: Path):
    lines: list[str] = []
    texts = {
        "newer_text": partial(beside_console_text, lines=lines, state=TransactionState.ONGOING, at=2 * HOUR),
        "older_text": partial(beside_console_text, lines=lines, state=TransactionState.COMPLETE_COMMIT, at=MINUTE),
    }
    c, told = built(texts)
    folder = c.capture(tmp_path / "brokers", END)
    (folder / "1" / "console.txt").write_text("\n".join([*lines, ""]))
    assert wrong(audited(folder), told) == {}
