"""What does not concern an open transaction forbids no abort of it; each beside what does."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.refutations import (
    END,
    NOTHING_ELSE,
    Kit,
    audits,
    cases,
    left,
    one_leader,
    safe,
    unsafe,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, wrong

pytestmark = pytest.mark.shares("kits")

# ---- A COMMIT marker above all epochs that it ends is a sign of transactions v2, be the first one as old as it may


def absorbed(c: Cluster) -> None:
    """A COMMIT marker ends a late write of epoch 0 and a transaction of epoch 1."""
    place, pid = ("of-another", 0), 790_000
    c.write(place, pid, 0, MINUTE)
    c.write(place, pid, 1, 2 * MINUTE)
    c.mark(place, pid, 2, "COMMIT", 3 * MINUTE)


RAISED = Schedules({"older_epoch_beside_a_marker_above_all_that_it_ends": left(3, 9, is_safe=False)})


# ---- Two copies of a coordinator partition that disagree

PLACES = Schedules()


def coordinators_disagree(s: Story, number: int) -> None:
    """Two copies of a coordinator partition, in which a record differs."""
    id_, log = id_in(number, f"differs-{s.topic}"), (TXN, number)
    s.c.note(id_, "Empty", s.pid + 300, 0, (), 0)
    s.c.note(id_, "Empty", s.pid + 300, 1, (), END - MINUTE)
    (of_id,) = (e for e in s.c.logs[log] if e.key == id_ and e.at)
    other = Entry(at=0, offset=0, key=id_, value=replace(of_id.value, producer_epoch=5))
    s.c.copies[log] = [Copy(1, END), Copy(2, END, keep=lambda e: e.offset > 0, own=(other,))]


def of_a_coordinator(number: int, *, is_safe: bool) -> Schedule:
    def of(s: Story) -> Expected:
        s.note("Empty", SECOND)
        s.transaction(MINUTE)
        s.write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 100 * MINUTE)
        one_leader(s)
        coordinators_disagree(s, number if number >= 0 else s.number)
        return safe(s) if is_safe else unsafe(s, fails=NOTHING_ELSE)

    return of


PLACES |= {
    "copies_of_another_coordinator_disagree": of_a_coordinator(40, is_safe=True),
    "copies_of_its_coordinator_disagree": of_a_coordinator(-1, is_safe=False),
}


# ---- The missing marker of an ABORT, and a COMMIT that no decision explains

MARKERS = Schedules()


MARKERS |= schedules_of("""
    # A later leader lost the marker of the only transaction.
    missing_marker_of_an_abort:
        Empty 0 | begin 1m | end 2m ABORT lost | beat 0 10m | elected → safe finds=MARKER_MISSING
    missing_marker_of_a_commit:
        Empty 0 | begin 1m | end 2m lost | beat 0 10m | elected → unsafe NOTHING_ELSE finds=MARKER_MISSING

    # A batch and a marker of another id on the partition, an hour after its newest decision.
    commit_of_another_producer_without_a_decision:
        Empty 0 | T 1m | write 3m | beat 0 10m 110m | write 70m pid=+500 | COMMIT 71m pid=+500 |
        one leader → unsafe NOTHING_ELSE finds=MARKER_WITHOUT_DECISION
    abort_of_another_producer_without_a_decision:
        Empty 0 | T 1m | write 3m | beat 0 10m 110m | write 70m pid=+500 | ABORT 71m pid=+500 |
        one leader → safe finds=MARKER_WITHOUT_DECISION
""")


KITS = {
    "raised": Kit(RAISED, then=absorbed),
    "places": Kit(PLACES),
    "markers": Kit(MARKERS),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_only_what_concerns_it_forbids_an_abort(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}
