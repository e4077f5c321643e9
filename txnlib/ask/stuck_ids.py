"""Transactional ids that are stuck without holding a partition: their application can begin no transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.queries import Filter, Row, StoredRun, among, column_names, ms
from txnlib.ask.words import Fact
from txnlib.core import kafka_commands
from txnlib.core.display import elapsed, printable, utc_time
from txnlib.core.findings.coordinator_findings import COMPLETION_OVERDUE

#: Most stuck ids to read.
MOST: Final = 1_000
#: The name under which a stuck id is counted, beside the verdicts of open transactions.
STUCK_ID: Final = "STUCK_ID"
_FINDING: Final = column_names("name topic partition offset producer_id transactional_id evidence")
_ID: Final = column_names(
    "transactional_id coordinator_partition producer_id producer_epoch state record_timestamp application"
)
WHY: Final = (
    "its coordinator decided, every captured partition has the marker, and the coordinator has not completed it: it"
    " waits for a partition that was not captured or is gone, or has given up (KAFKA-19999)"
)
ADVICE: Final = (
    "move the leader of its coordinator partition, so that the markers are sent again; if the preferred replica leads"
    " already, restart that broker"
)


@dataclass(frozen=True, slots=True)
class StuckId:
    """A transactional id that was decided, marked and never completed."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int | None
    producer_epoch: int | None
    #: Kafka's name of its state, and since when it has it, in epoch ms; None if no record tells.
    state: str | None
    since_ms: int | None
    application: str | None

    def for_how_long(self, as_of_ms: int) -> str:
        """Its state, and how long it has been in that state."""
        state = "decided" if self.state is None else printable(self.state)
        return state if self.since_ms is None else f"{state} for {elapsed(as_of_ms - self.since_ms)}"

    def facts(self) -> list[Fact]:
        """What is wrong and what helps."""
        since = [] if self.since_ms is None else [Fact("since", f"{utc_time(self.since_ms)} by its coordinator")]
        return [
            Fact("why", WHY),
            *since,
            Fact("holds", "no partition: consumers get everything, but its application can begin no transaction"),
            Fact("note", ADVICE),
            Fact("do", kafka_commands.move_coordinator(self.coordinator_partition)),
        ]


def stuck_ids(run: StoredRun, known: Sequence[Sequence[Filter]] = (), name: str | None = None) -> list[StuckId]:
    """The ids that are stuck without holding a partition, those that wait longest first.

    `known`: the filters of acknowledged findings, which are left out. `name`: only this id.
    """
    named: list[Filter] = [] if name is None else [("transactional_id", "=", name)]
    overdue = [("name", "=", COMPLETION_OVERDUE.name), ("transactional_id", "IS NOT", None), *named]
    found = run.rows("findings", _FINDING, overdue, order='"transactional_id"', limit=MOST, is_optional=True)
    left = [row for row in found if not any(_meets(row, filters) for filters in known)]
    if not left:
        return []
    rows = run.rows("transactional_ids", _ID, among(left, "transactional_id"))
    of_ids = {(row["transactional_id"], row["coordinator_partition"]): row for row in rows}
    ids = [_stuck(row, of_ids.get((row["transactional_id"], row["partition"]), {})) for row in left]
    return sorted(ids, key=lambda each: (each.since_ms is None, each.since_ms or 0, each.transactional_id))


def _stuck(finding: Row, of_id: Row) -> StuckId:
    return StuckId(
        finding["transactional_id"],
        finding["partition"],
        finding["producer_id"],
        of_id.get("producer_epoch"),
        of_id.get("state"),
        ms(of_id.get("record_timestamp")),
        of_id.get("application"),
    )


def _meets(row: Row, filters: Sequence[Filter]) -> bool:
    """Whether a finding has all these values."""
    return all(row.get(column) == wanted for column, _, wanted in filters)
