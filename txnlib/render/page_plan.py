"""The action plan of the report page, grouped by action and reason.

What all steps of a group say is said once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from txnlib.core.display import printable
from txnlib.core.verdicts.abort_plan import Action
from txnlib.queries.rows import Row


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What one command ends, or one transaction without a command."""

    #: Rows of the plan with the same command.
    rows: Sequence[Row]
    #: What only this step of its group says.
    says: Sequence[str]
    #: The partitions and start offsets beside those of `rows`.
    other_places: Sequence[str]

    @property
    def row(self) -> Row:
        return self.rows[0]


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """Steps of one action and one reason, in the order of the plan."""

    action: str
    reason: str
    verdict: str
    steps: Sequence[PlanStep]
    #: What all steps say.
    says: Sequence[str]
    #: Number of transactions.
    count: int


def plan_groups(plan: Sequence[Row]) -> list[PlanGroup]:
    """The plan in its order, grouped by action and reason."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in plan:
        groups.setdefault((row["action"], row["reason"]), []).append(row)
    return [_group(rows) for rows in groups.values()]


def can_be_pasted(command: str) -> bool:
    """Whether the page shows the command literally. Ids may contain characters that should not be pasted unseen."""
    return printable(command) == command


def is_offered(row: Row) -> bool:
    """Whether the command is to be run now, and can be copied from the page."""
    return row["command"] is not None and row["action"] != Action.ABORT_LATER.name and can_be_pasted(row["command"])


def _group(rows: Sequence[Row]) -> PlanGroup:
    said = [list(_says(row)) for row in rows]
    shared = [each for each in said[0] if all(each in others for others in said)]
    steps = [_step(each, set(shared)) for each in at_once(rows)]
    first = rows[0]
    return PlanGroup(first["action"], first["reason"], first["verdict"], steps, shared, len(rows))


def at_once(plan: Sequence[Row]) -> list[list[Row]]:
    """Rows of the plan, grouped by the command that settles them."""
    groups: dict[object, list[Row]] = {}
    for row in plan:
        groups.setdefault(row["number"] if row["command"] is None else row["command"], []).append(row)
    return list(groups.values())


def _step(rows: Sequence[Row], shared: set[str]) -> PlanStep:
    own = {f"{row['topic']}-{row['partition']} offset {row['start_offset']}" for row in rows}
    places = dict.fromkeys(place for row in rows for place in row["places"] or ())
    says = dict.fromkeys(each for row in rows for each in _says(row) if each not in shared)
    return PlanStep(rows, list(says), [place for place in places if place not in own])


def _says(row: Row) -> Iterator[str]:
    """Why no marker may be written, or not yet; then what the step does to records, and the notes."""
    because = row["do_not_abort_because"]
    if because is not None:
        yield f"{'Not yet' if row['action'] == Action.ABORT_LATER.name else 'No marker by hand'}: {because}"
    if row["effect"] is not None:
        yield f"Effect: {row['effect']}"
    yield from (note for note in row["notes"] or () if note != because)
