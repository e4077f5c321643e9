"""A rule: what may be odd, as a query, and a function that makes rows of `findings` of it.

A finding gives name, severity and meaning; its rule gives place and evidence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, get_args, get_type_hints

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import OfProducer

INVALID_TIMESTAMP: Final = Finding(
    name="INVALID_TIMESTAMP",
    severity=Severity.WARNING,
    topic=Topic.BATCHES,
    meaning=(
        "The last write of a producer, or the last record of a transactional id, has a timestamp that is out of"
        " range (before 1970 or after the year 9999; nanoseconds, for example): ages derived from it are unknown."
    ),
    advice=(
        "the client sets its own timestamps in a unit other than milliseconds, or leaves them unset. Correct the"
        " client. Brokers from 4.0 on refuse such records; older brokers refuse them with"
        " `message.timestamp.difference.max.ms`. In a coordinator's record, such a timestamp is damage: compare"
        " another replica."
    ),
)


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A row of `findings`."""

    name: str
    severity: str
    topic: str | None
    partition: int | None
    offset: int | None
    producer_id: int | None
    transactional_id: str | None
    transaction_number: int | None
    message: str
    evidence: str


@dataclass(frozen=True, slots=True)
class QueryStep:
    """A query that is computed once, under a name that later queries have in braces. If it returns no row, nothing is
    odd."""

    name: str
    query: str
    #: Whether the query returns few rows: they grow with the cluster, not with its logs.
    are_few: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What may be odd: a query, and the function that judges each of its rows by itself.

    A query names tables in braces (`{producer_spans}`), and values after a colon (`:as_of_ms`): these are settings, or
    `given`.
    """

    #: The table whose rows are judged. If it is empty, the query does not run.
    of: str
    #: In order. A query may name those before it.
    steps: tuple[QueryStep, ...] = ()
    query: str
    #: Its first parameter gets the rows, such as `Iterable[OddMarker]`, with a field for each column. The other
    #: parameters get values.
    judge: Callable[..., Iterator[FindingRow]]
    #: Name of a value -> what makes it of small tables (`producer_id_blocks: Sequence[ProducerIdBlock]`) and settings.
    given: Mapping[str, Callable[..., object]] = field(default_factory=dict)

    @property
    def row(self) -> type:
        """The dataclass of the rows that `judge` gets."""
        first: type = get_args(next(iter(get_type_hints(self.judge).values())))[0]
        return first

    @property
    def texts(self) -> tuple[str, ...]:
        return (*(step.query for step in self.steps), self.query)


@dataclass(frozen=True, slots=True)
class OfTransaction(OfProducer):
    transactional_id: str | None
    #: As in `transactions`.
    transaction_number: int | None


_PLACE: Final = ("topic", "partition", "offset", "producer_id", "transactional_id", "transaction_number")


def found(
    finding: Finding, evidence: str, at: object = None, *, severity: Severity | None = None, **place: Any
) -> FindingRow:
    """The row of a finding. Its place is copied from the row `at`; columns in `place` replace it.

    If the row has a `coordinator_partition` and no topic, its place is in the coordinator's log. `severity`: None for
    that of the finding.
    """
    where = {name: getattr(at, name, None) for name in _PLACE}
    coordinator = getattr(at, "coordinator_partition", None)
    if where["topic"] is None and coordinator is not None:
        where |= {"topic": TRANSACTION_STATE_TOPIC, "partition": coordinator}
    named = (finding.severity if severity is None else severity).name
    return FindingRow(name=finding.name, severity=named, message=finding.meaning, evidence=evidence, **(where | place))


def known(value: int | str | None) -> int | str:
    """The value, or `unknown` for None, as evidence shows it."""
    return "unknown" if value is None else value


def is_unshown(ms: int | None) -> bool:
    """Whether a record has a time that no clock can show; False for None."""
    return ms is not None and clock_ms(ms) is None


def unshown(times: Mapping[str, int | None]) -> str:
    """The times that no clock can show, each with its name and number, as text; empty if there are none."""
    return "; ".join(f"{what} stamped {ms} ms" for what, ms in times.items() if is_unshown(ms))


#: An escape in JSON: a control character, or any other.
_ESCAPE: Final = re.compile(r"\\(?:u00([0-9a-f]{2})|.)")


def as_json(row: object) -> str:
    """A dataclass as JSON, as Spark's `to_json` writes a struct: without spaces, and without the fields that are
    None."""
    text = json.dumps(_members(row), ensure_ascii=False, separators=(",", ":"))
    return _ESCAPE.sub(lambda escape: f"\\u00{escape[1].upper()}" if escape[1] else escape[0], text)


def _members(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_members(each) for each in value]
    if not is_dataclass(value):
        return value
    members = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: _members(member) for name, member in members.items() if member is not None}
