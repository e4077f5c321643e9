"""The differences between two audits of a cluster, by their open transactions. Judges nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from txnlib.queries.summary import Row

Key = tuple[str, int, int, int]
Place = tuple[str, int]

#: Change -> what it means, in the order in which changes are shown.
CHANGES: Final[Mapping[str, str]] = {
    "NEW": "open now, and not then",
    "VERDICT": "open in both, and judged otherwise",
    "ENDED": "open then, and not now",
    "NOT_SEEN": "open then; its partition was not captured now, so it may be open still",
    "SEEN": "open now; its partition was not captured then, so it may have been open",
}
COLUMNS: Final = (
    "change",
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "transactional_id",
    "verdict_then",
    "verdict_now",
    "reason_now",
    "says",
)


def key_of(row: Row) -> Key:
    return row["topic"], row["partition"], row["producer_id"], row["start_offset"]


def differences(
    then: Sequence[Row],
    now: Sequence[Row],
    *,
    captured_then: Collection[Place],
    captured_now: Collection[Place],
    endings: Mapping[Key, str],
) -> list[Row]:
    """One row per transaction that is new, ended or judged differently. `endings`: how transactions ended. Columns: COLUMNS."""
    before, after = {key_of(row): row for row in then}, {key_of(row): row for row in now}
    found = [_row(_began(key, captured_then), None, row) for key, row in after.items() if key not in before]
    for key, row in before.items():
        if key not in after:
            found.append(_row("ENDED" if key[:2] in captured_now else "NOT_SEEN", row, None, endings.get(key)))
        elif row["verdict"] != after[key]["verdict"]:
            found.append(_row("VERDICT", row, after[key]))
    return sorted(found, key=lambda row: (list(CHANGES).index(row["change"]), *key_of(row)))


def _began(key: Key, captured_then: Collection[Place]) -> str:
    return "NEW" if key[:2] in captured_then else "SEEN"


def _row(change: str, then: Row | None, now: Row | None, ended: str | None = None) -> Row:
    known = now if now is not None else then
    assert known is not None
    says = known["explanation"] if now is not None else (ended or CHANGES[change])
    return {
        "change": change,
        **{name: known[name] for name in COLUMNS[1:6]},
        "verdict_then": None if then is None else then["verdict"],
        "verdict_now": None if now is None else now["verdict"],
        "reason_now": None if now is None else now["reason"],
        "says": says,
    }
