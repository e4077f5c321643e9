"""A cluster that is captured and audited on three nights."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.audits import AuditTables, audited_anew
from tests.support.cluster import COORDINATORS, MINUTE, TXN, Cluster, Copy
from tests.support.schedules import Expected, Schedules, Story, Told, built

CAPTURED = (70 * MINUTE, 120 * MINUTE, 180 * MINUTE)


@dataclass
class ThreeNights(Cluster):
    """A cluster that is captured three times. What its copies are, and what is expected, by the instant."""

    copied: dict[int, list[Callable[[], None]]] = field(default_factory=lambda: defaultdict(list))
    told: dict[int, Told] = field(default_factory=lambda: defaultdict(dict))

    def expect(self, s: Story, *expected: Expected | None) -> None:
        """What each night must say of a schedule; None: that does not matter."""
        for captured, each in zip(CAPTURED, expected, strict=True):
            if each is not None:
                self.told[captured][s.topic] = s.topic, each


def nights_of(s: Story) -> ThreeNights:
    assert isinstance(s.c, ThreeNights)
    return s.c


def leader_epochs(s: Story, until: int) -> tuple[tuple[int, int], ...]:
    """What the leader-epoch-checkpoint has at an instant."""
    found: dict[int, int] = {}
    for offset, entry in enumerate(sorted(s.c.logs[s.place], key=lambda each: each.at)):
        if entry.at <= until:
            found.setdefault(entry.leader_epoch, offset)
    return tuple(found.items())


#: Schedules of which the nights are audited together: those of all modules that were imported.
_TOGETHER = Schedules()
_AUDITED: list[dict[int, tuple[AuditTables, Told]]] = []


def together(schedules: Schedules) -> Schedules:
    """Has these schedules in the same cluster as all others that are given here."""
    assert not _TOGETHER.keys() & schedules
    _TOGETHER.update(schedules)
    return schedules


def audited_together(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[AuditTables, Told]]:
    """The nights of those schedules; the same in each call."""
    if not _AUDITED:
        _AUDITED.append(audited_nights(_TOGETHER, tmp_path_factory.mktemp("nights")))
    return _AUDITED[0]


def audited_nights(schedules: Schedules, folder: Path) -> dict[int, tuple[AuditTables, Told]]:
    """The tables of each night, and what is expected of them."""
    c = ThreeNights()
    built(schedules, c)
    found: dict[int, tuple[AuditTables, Told]] = {}
    before = None
    for captured in CAPTURED:
        for number in range(COORDINATORS):
            c.copies[TXN, number] = [Copy(1, captured)]
        for change in c.copied[captured]:
            change()
        given = {} if before is None else {"folder": before.folder}
        now = audited_anew([c.capture(folder / str(captured), captured)], "--cluster", "small", **given)
        now.rows("hanging_transactions")
        now.rows("open_transactions")
        now.run.note("DONE")
        found[captured] = now, c.told[captured]
        before = now
    return found
