"""A world in words: in the order of its instants, what was written, decided and lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txnlib.core.display import instant
from txnlib.core.verdicts.scene import FIRST, complete, decided, marker
from txnlib.core.verdicts.times import Times
from txnlib.core.verdicts.world import World, Worlds

#: Number of newest markers, and of newest decisions, that a story tells.
_TOLD: Final = 3


class Covering(NamedTuple):
    """A COMMIT that may include open records in a world. `decision`: its number; a name, if no record shows it."""

    decision: int | str
    #: The times in which it includes open records.
    times: Times
    #: Whether it was completed, so that it has written its marker here.
    is_complete: bool
    #: Why such a COMMIT is possible, if no record shows it.
    why: str | None = None


class _Event(NamedTuple):
    name: str
    says: str


def told(scene: Worlds, world: World, covering: Covering) -> tuple[str, ...]:
    """The world in which a COMMIT includes the open records, from the first event to the last: one sentence each."""
    waiting = list(_events(scene, world, covering))
    in_order: list[str] = []
    while waiting:
        # Next comes an event before which none of the others must happen. If several are possible, the first in the
        # list.
        first = next(
            each for each in waiting if all(covering.times.may_be_before(each.name, other.name) for other in waiting)
        )
        waiting.remove(first)
        in_order.append(first.says)
    return tuple(in_order)


def _events(scene: Worlds, world: World, covering: Covering) -> Iterator[_Event]:
    carried = {at: scene.decisions[number] for number, at in world.own.items()}
    for at, each in [*enumerate(scene.markers)][-_TOLD:]:
        says = f"{each.type or 'a'} marker at offset {each.offset}{_dated(each.ms)}"
        of = f"it carries out {carried[at].place}" if at in carried else "a repeat, or of no record that is left"
        yield _Event(marker(at), f"{says}: {of}")
    yield _Event(FIRST, f"its first batch is written, at offset {scene.case.span.start_offset}")
    if isinstance(covering.decision, int):
        shown = scene.decisions[covering.decision]
        lists = "may list" if shown.partitions is None else "lists"
        says = f"its coordinator decides COMMIT{_dated(shown.said_ms)}: {shown.place}, which {lists} this partition"
    else:
        says = f"its coordinator decides COMMIT for this partition: {covering.why}"
    yield _Event(decided(covering.decision), says)
    is_lost = covering.is_complete and scene.lost_markers is not None
    how = f"is written here, and lost: {scene.lost_markers}" if is_lost else "is not written here"
    yield _Event(complete(covering.decision), f"the marker of that COMMIT {how}")


def _dated(ms: int | None) -> str:
    return "" if ms is None else f" ({instant(ms)})"
