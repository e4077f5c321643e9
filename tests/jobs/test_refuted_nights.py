"""Proofs that are carried from one night to the next.

Schedules as in tests/jobs/test_refuted_proofs.py, audited twice.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited_anew
from tests.support.cluster import COORDINATORS, HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, id_in
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OLD_ENOUGH,
    led_by_another,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, built, wrong

pytestmark = pytest.mark.shares("kits")

NIGHTS = Schedules()
FIRST_NIGHT = 70 * MINUTE


class TwoNights(Cluster):
    """A cluster that is captured twice. `later`: what the copies of the second night are."""

    later: list[Callable[[], None]]

    def __init__(self) -> None:
        super().__init__()
        self.later = []


def carried(
    *, elected_before: bool, elected_after: bool, cleaned: int, commits: bool = False, is_safe: bool
) -> Schedule:
    """Open since +60 min; the first night lacks only its age. Elections at +65 and +80 min; the second night's
    coordinator is compacted up to an instant."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, TwoNights)
        other = id_in(s.number, f"other-{s.number}")
        epochs = [(0, 0)]
        s.note("Empty", 0)
        for at in (1, 2, 40, 64):
            s.c.note(other, "Empty", 900_000 + s.number, 0, (), at * MINUTE)
        s.beat(MINUTE, 58 * MINUTE)
        s.transaction(59 * MINUTE)
        s.write(HOUR)
        s.beat(61 * MINUTE)
        if elected_before:
            epochs.append((3, 10))
        newest = 3 if elected_before else 0
        s.beat(66 * MINUTE, leader_epoch=newest)
        s.note("Empty", 65 * MINUTE, epoch=1)
        if commits:
            s.note("Ongoing", 85 * MINUTE, [s.place], epoch=1)
            s.note("PrepareCommit", 86 * MINUTE, [s.place], epoch=1, start=85 * MINUTE)
            s.note("CompleteCommit", 86 * MINUTE + 20, (), epoch=1, start=85 * MINUTE)
        if cleaned > FIRST_NIGHT:
            s.note("Empty", 89 * MINUTE, epoch=2)
        s.c.note(other, "Empty", 900_000 + s.number, 0, (), 120 * MINUTE)
        if elected_after:
            newest = 4
        s.beat(81 * MINUTE, 100 * MINUTE, leader_epoch=newest)
        s.copied(Copy(1, FIRST_NIGHT, leader_epochs=tuple(epochs)))
        before = 0 if elected_before else 63 * MINUTE
        s.coordinator(Copy(1, FIRST_NIGHT, is_compacted_until=before or None))

        def later() -> None:
            after = (4, 12) if elected_after else None
            s.copied(Copy(1, END, leader_epochs=(*epochs, *([after] if after else ()))))
            s.coordinator(Copy(1, END, is_compacted_until=cleaned))

        s.c.later.append(later)
        return s.expect("HANGING", is_safe=is_safe)

    return of


NIGHTS |= {
    "proven_by_history_and_compacted_since": carried(
        elected_before=True, elected_after=False, cleaned=90 * MINUTE, is_safe=True
    ),
    "proven_by_its_leader_that_was_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=65 * MINUTE + 1, is_safe=True
    ),
    # What both nights read has no hole.
    "compacted_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=90 * MINUTE, is_safe=True
    ),
    "committed_compacted_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=90 * MINUTE, commits=True, is_safe=False
    ),
    "committed_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=65 * MINUTE + 1, commits=True, is_safe=False
    ),
}


def just_after(*, clock: str) -> Schedule:
    """A COMMIT of the open records a minute after the first night loses its marker in an election. A clock that is two
    minutes behind says that it was before: that of the coordinator, or of the new leader."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, TwoNights)
        late = FIRST_NIGHT + MINUTE
        led = led_by_another(s, -2 * MINUTE) if clock == "leader" else 1
        of_coordinator = 0 if clock == "leader" else 2 * MINUTE
        s.note("Empty", 0)
        s.beat(MINUTE, 58 * MINUTE)
        s.write(HOUR)
        s.beat(61 * MINUTE)
        for state, at in (("Ongoing", late), ("PrepareCommit", late + 10), ("CompleteCommit", late + 30)):
            said = {"stamp": at - of_coordinator, "last_update_timestamp_ms": NOON + at - of_coordinator}
            s.note(state, at, [s.place] if state != "CompleteCommit" else (), start=late - of_coordinator, **said)
        if clock == "leader":
            s.note("Empty", 89 * MINUTE, epoch=1)
        s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 900_000 + s.number, 0, (), 120 * MINUTE)
        s.beat(late + SECOND, 100 * MINUTE, leader_epoch=4)
        s.copied(Copy(led, FIRST_NIGHT, leader_epochs=((0, 0),)))
        s.coordinator(Copy(1, FIRST_NIGHT))

        def later() -> None:
            s.copied(Copy(led, END, leader_epochs=((0, 0), (4, 7))))
            s.coordinator(Copy(1, END, is_compacted_until=90 * MINUTE))

        s.c.later.append(later)
        return s.expect("HANGING", is_safe=False, fails=NO_COMMIT)

    return of


NIGHTS |= {
    "committed_after_the_first_night_by_a_clock_that_says_before": just_after(clock="coordinator"),
    "followed_after_the_first_night_by_a_clock_that_says_before": just_after(clock="leader"),
}


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> tuple[AuditTables, AuditTables, Told]:
    folder, c = tmp_path_factory.mktemp("nights"), TwoNights()
    _, told = built(NIGHTS, c)
    for number in range(COORDINATORS):
        if (TXN, number) not in c.copies:
            c.copies[TXN, number] = [Copy(1, FIRST_NIGHT)]
    before = audited_anew([c.capture(folder / "first", FIRST_NIGHT)], "--cluster", "small")
    before.rows("hanging_transactions")
    before.run.note("DONE")
    for number in range(len(NIGHTS), COORDINATORS):
        c.copies[TXN, number] = [Copy(1, END)]
    for change in c.later:
        change()
    after = audited_anew([c.capture(folder / "second", END)], "--cluster", "small", folder=before.folder)
    return before, after, told


def row_of(tables: AuditTables, told: Told, name: str) -> dict[str, Any]:
    topic, expected = told[name]
    rows = tables.rows("open_transactions")
    return next(row for row in rows if (row["topic"], row["producer_id"]) == (topic, expected.producer_id))


@pytest.mark.parametrize("name", NIGHTS)
def test_on_the_first_night_only_the_age_is_missing(nights, name):
    before, _, told = nights
    row = row_of(before, told, name)
    assert [each["name"] for each in row["safety"] if not each["holds"]] == [OLD_ENOUGH]
    assert row["safe_from"] is not None


@pytest.mark.parametrize("name", NIGHTS)
def test_a_promise_names_its_condition(nights, name):
    before, _, told = nights
    assert "still proves the rest" in row_of(before, told, name)["do_not_abort_because"]


@pytest.mark.parametrize("name", NIGHTS)
def test_what_an_audit_proved_stays_proven_and_only_what_came_later_is_asked(nights, name):
    _, after, told = nights
    assert wrong(after, {name: told[name]}) == {}


@pytest.mark.parametrize("name", ["committed_compacted_and_followed_since", "committed_and_followed_since"])
def test_what_was_withdrawn_since_the_last_audit_is_said(nights, name):
    before, after, told = nights
    assert row_of(before, told, name)["safe_from"] is not None
    assert "audit" in row_of(after, told, name)["do_not_abort_because"]
