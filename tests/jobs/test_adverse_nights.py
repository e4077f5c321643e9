"""Proofs over three nights, and what a later night shows.

Each that is refuted is beside a control that nothing refutes. More of tests/jobs/test_refuted_proofs.py.
"""

from dataclasses import dataclass

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, Copy, id_in
from tests.support.nights import CAPTURED, ThreeNights, audited_together, leader_epochs, together
from tests.support.refutations import refuted, safe
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, wrong

pytestmark = pytest.mark.shares("nights")

OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
NIGHTS = Schedules()


@dataclass(frozen=True)
class Night:
    """What a capture has: the disks' last instants, that up to which the coordinator is compacted, and whether an abort
    is safe."""

    is_safe: bool | None
    partition: int | None = None
    coordinator: int | None = None
    compacted: int | None = None
    topic_id: str | None = None
    #: Whether the instants of copies are those of the capture, though the disks end before.
    is_stale: bool = False


def open_since_half_past(
    *nights: Night,
    elected: tuple[int, ...] = (),
    restarted: tuple[int, ...] = (),
    committed: tuple[int, ...] = (),
    moved: int | None = None,
) -> Schedule:
    """Open since +30 min. In minutes: elections of the partition, of which each loses the marker of a commit just
    before; restarts of the application; commits; when the coordinator moved."""

    def of(s: Story) -> Expected:
        c = s.c
        assert isinstance(c, ThreeNights)
        other, epoch, leader = id_in(s.number, f"other-{s.number}"), 0, 0

        def led(at: float) -> dict[str, int]:
            return {"leader_epoch": 1 if moved is not None and at > moved else 0}

        for at in (0, 2, 33, 46, 64, 88, 118, 140, 170):
            c.note(other, "Empty", 900_000 + s.number, 0, (), at * MINUTE, **led(at))
        s.note("Empty", 0)
        s.beat(MINUTE, 28 * MINUTE)
        s.transaction(29 * MINUTE)
        s.write(30 * MINUTE)
        s.beat(31 * MINUTE)
        events = [(at, "elected") for at in elected] + [(at, "restarted") for at in restarted]
        events += [(at, "committed") for at in committed] + [(at + 0.5, "beat") for at in (40, 76, 100, 150)]
        for at, what in sorted(events):
            now = int(at * MINUTE)
            if what == "elected":
                leader += 1
                s.beat(now + 100, leader_epoch=leader)
            elif what == "beat":
                s.beat(now, leader_epoch=leader)
            elif what == "restarted":
                epoch += 1
                s.note("Empty", now, epoch=epoch, **led(at))
            else:
                s.note("Ongoing", now, [s.place], epoch=epoch, **led(at))
                s.note("PrepareCommit", now + 10, [s.place], epoch=epoch, start=now, **led(at))
                s.note("CompleteCommit", now + 30, (), epoch=epoch, start=now, **led(at))
        topic = s.topic
        for captured, night in zip(CAPTURED, nights, strict=False):

            def copy(captured: int = captured, night: Night = night) -> None:
                until = captured if night.partition is None else night.partition * MINUTE
                taken = captured if night.is_stale else until
                s.copied(
                    Copy(1, until, taken=taken, leader_epochs=leader_epochs(s, until), topic_id=night.topic_id),
                )
                until = captured if night.coordinator is None else night.coordinator * MINUTE
                cleaned = None if night.compacted is None else night.compacted * MINUTE
                taken = captured if night.is_stale else until
                s.coordinator(Copy(1, until, taken=taken, is_compacted_until=cleaned))

            c.copied[captured].append(copy)
            if night.is_safe is not None:
                c.told[captured][topic] = topic, safe(s) if night.is_safe else refuted(s)
        return refuted(s)

    return of


WHOLE = Night(is_safe=True)
NIGHTS |= {
    "quiet-through-three-nights": open_since_half_past(
        WHOLE, Night(True, compacted=80), Night(True, compacted=160), elected=(60, 110, 150), restarted=(50,)
    ),
    "restarted-under-the-leader-of-the-first-night": open_since_half_past(
        WHOLE, Night(True, compacted=100), Night(True, compacted=110), elected=(60, 150), restarted=(90,)
    ),
    "committed-and-lost-before-the-second-night": open_since_half_past(
        WHOLE,
        Night(False, compacted=110),
        Night(False, compacted=160),
        elected=(60, 96),
        committed=(95,),
        restarted=(98,),
    ),
    "committed-and-lost-after-the-second-night": open_since_half_past(
        WHOLE,
        Night(True, compacted=100),
        Night(False, compacted=160),
        elected=(60, 131),
        committed=(130,),
        restarted=(90, 135),
    ),
    "committed-between-the-copies-of-the-first-night": open_since_half_past(
        Night(None, coordinator=55),
        Night(False, compacted=110),
        Night(False, compacted=160),
        elected=(65,),
        committed=(60,),
        restarted=(80,),
    ),
    "nothing-between-the-copies-of-the-first-night": open_since_half_past(
        Night(True, coordinator=69),
        Night(True, compacted=110),
        Night(True, compacted=160),
        elected=(65,),
        restarted=(80,),
    ),
    "committed-between-the-copies-of-the-second-night": open_since_half_past(
        WHOLE,
        Night(None, coordinator=105, compacted=100),
        Night(False, compacted=160),
        elected=(60, 112),
        committed=(110,),
        restarted=(
            90,
            135,
        ),
    ),
    "topic-created-again": open_since_half_past(
        Night(True, topic_id=OLD),
        Night(False, compacted=110, topic_id=NEW),
        Night(False, compacted=160, topic_id=NEW),
        elected=(60,),
        restarted=(90,),
    ),
    "topic-of-the-same-id": open_since_half_past(
        Night(True, topic_id=OLD),
        Night(True, compacted=110, topic_id=OLD),
        Night(True, compacted=160, topic_id=OLD),
        elected=(60,),
        restarted=(90,),
    ),
    "second-night-by-an-older-copy": open_since_half_past(
        Night(False),
        Night(False, partition=50, compacted=110),
        Night(False, compacted=160),
        elected=(60,),
        committed=(55,),
        restarted=(90,),
    ),
    "second-night-by-an-older-copy-of-a-safe-one": open_since_half_past(
        WHOLE,
        Night(None, partition=50, compacted=110),
        Night(True, compacted=160),
        elected=(60,),
        restarted=(90,),
    ),
    "second-night-without-its-coordinator": open_since_half_past(
        WHOLE,
        Night(False, coordinator=20, compacted=15),
        # Refused, although no marker can have been lost: a decision that is hidden between the nights is not followed.
        Night(False, compacted=160),
        elected=(60,),
        restarted=(90,),
    ),
    "first-night-by-a-coordinator-that-had-been-deposed": open_since_half_past(
        Night(None, coordinator=40, is_stale=True),
        Night(False, compacted=110),
        Night(False, compacted=160),
        elected=(65,),
        committed=(60,),
        restarted=(62,),
        moved=45,
    ),
    "nobodys-on-the-first-night": open_since_half_past(
        Night(None, coordinator=-1, is_stale=True),
        Night(False, compacted=110),
        Night(False, compacted=160),
        elected=(110,),
        committed=(105,),
        restarted=(108,),
    ),
    "seen-on-the-second-night-for-the-first-time": open_since_half_past(
        Night(None, partition=20),
        Night(True),
        Night(True, compacted=160),
        elected=(60, 150),
        restarted=(50,),
    ),
    "seen-on-the-second-night-after-compaction": open_since_half_past(
        Night(None, partition=20),
        Night(False, compacted=110),
        Night(False, compacted=160),
        elected=(60, 150),
        restarted=(50,),
    ),
    "three-elections-and-nothing-else": open_since_half_past(
        WHOLE,
        Night(True, compacted=110),
        Night(True, compacted=160),
        elected=(60, 90, 140),
    ),
    "committed-under-the-leader-of-the-second-night-and-its-marker-lost-on-the-third": open_since_half_past(
        WHOLE,
        Night(True, compacted=110),
        Night(False, compacted=160),
        elected=(60, 90, 141),
        committed=(140,),
        restarted=(145,),
    ),
}


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> dict[int, tuple[AuditTables, Told]]:
    return audited_together(tmp_path_factory)


@pytest.mark.parametrize("name", together(NIGHTS))
@pytest.mark.parametrize("captured", CAPTURED)
def test_a_proof_is_carried_until_a_night_refutes_it(nights, captured, name):
    tables, told = nights[captured]
    assert wrong(tables, {key: each for key, each in told.items() if key == name}) == {}
