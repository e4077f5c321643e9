"""Records of the metadata log, in the order in which they count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A row of `metadata_log` that counts. Its subclasses have the columns of some types of record."""

    type: str
    offset: int
    snapshot_offset: int | None = None
    timestamp_ms: int | None = None

    @property
    def at_offset(self) -> int:
        """The place in the log. A snapshot shows the state before its offset, after all records of lower offsets."""
        return self.offset if self.snapshot_offset is None else self.snapshot_offset - 1

    @property
    def since_offset(self) -> int | None:
        """The offset at which a state begins; None in a snapshot, which does not show it."""
        return self.offset if self.snapshot_offset is None else None

    @property
    def since_ms(self) -> int | None:
        """The time at which a state begins; None in a snapshot."""
        return self.timestamp_ms if self.snapshot_offset is None else None


@dataclass(frozen=True, slots=True)
class ValidState:
    """The columns that say from when to when a row of the metadata tables applies."""

    since_offset: int | None
    since_ms: int | None
    until_offset: int | None
    until_ms: int | None
    is_current: bool


#: The fields of a ValidState.
Validity = tuple[int | None, int | None, int | None, int | None, bool]
Change = TypeVar("Change", bound=MetadataChange)
State = TypeVar("State")


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The records in the order of the log, those of a snapshot after the records that led to its state."""
    return sorted(changes, key=lambda each: (each.at_offset, each.snapshot_offset is not None, each.offset))


def by_subject(changes: Iterable[Change], subject_of: Callable[[Change], Hashable]) -> Iterator[list[Change]]:
    """The records of each subject, in order."""
    subjects: dict[Hashable, list[Change]] = {}
    for each in in_order(changes):
        subjects.setdefault(subject_of(each), []).append(each)
    yield from subjects.values()


def with_validity(
    states: Sequence[tuple[Change, State]], removal: MetadataChange | None = None
) -> Iterator[tuple[Change, State, Validity]]:
    """Each state of a subject with its validity: it ends where the next one begins, or its subject is removed."""
    ends = [*(change for change, _ in states[1:]), removal]
    for (change, state), end in zip(states, ends, strict=False):
        begin = change.since_offset, change.since_ms
        yield change, state, (*begin, None, None, True) if end is None else (*begin, end.at_offset, end.since_ms, False)
