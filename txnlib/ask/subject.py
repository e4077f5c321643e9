"""The words of a command, as names of partitions and ids."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.ask.own_command import own_command
from txnlib.ask.rows import Filter, Row, StoredRun
from txnlib.errors import UsageError, meant

_DIGITS: Final = "[0-9]{1,18}"
_NUMBER: Final = re.compile(_DIGITS)
#: A partition and an offset of it, as answers print them: `payments-0`, `payments-0 @24`, `payments-0 from offset 24`.
_PLACE: Final = re.compile(rf"(?P<topic>\S+)[- ](?P<partition>{_DIGITS})(?:(?: ?@|(?: from)? offset )(?P<start_offset>{_DIGITS}))?")
_COLUMNS: Final = ("topic", "partition", "start_offset")
#: Most names of a kind among which to seek the one that is meant.
_MOST_NAMES: Final = 10_000


def readings(words: Sequence[str]) -> list[Row]:
    """What words may name, the likeliest first: columns with their values.

    One word is an id before it is a partition, because a partition can be written as two.
    """
    named = " ".join(words)
    ids: list[Row] = [{"transactional_id": named}]
    if _NUMBER.fullmatch(named):
        ids.append({"producer_id": int(named)})
    place = _PLACE.fullmatch(named)
    if len(words) in (2, 3) and all(map(_NUMBER.fullmatch, words[1:])):
        return [dict(zip(_COLUMNS, (words[0], *map(int, words[1:])), strict=False)), *ids]
    if place is None:
        return ids
    numbers = {name: int(place[name]) for name in _COLUMNS[1:] if place[name] is not None}
    return [*ids, {"topic": place["topic"], **numbers}]


def place_in(words: Sequence[str]) -> Row | None:
    """The partition that words may name, and an offset of it if they have one; None if they can only be an id."""
    return next((reading for reading in readings(words) if "topic" in reading), None)


def take_place(options: Namespace) -> None:
    """Puts the partition of `where` to where --topic and --partition put it. Raises UsageError if it is none, or named twice."""
    if not options.where:
        return
    place = place_in(options.where)
    if place is None:
        raise UsageError(f"{' '.join(options.where)} is no partition, such as payments-0")
    if options.topic is not None or options.partition is not None:
        raise UsageError("name the partition once: as payments-0, or by --topic and --partition")
    options.topic, options.partition = place["topic"], place["partition"]


def equal(**values: object) -> list[Filter]:
    """Filters for these values of columns; None: any."""
    return [(column, "=", value) for column, value in values.items() if value is not None]


def is_captured(run: StoredRun, topic: str, partition: int | None = None) -> bool:
    """Whether a copy of a topic, or of a partition of it, was audited."""
    return bool(run.number("coverage", "count(*)", [*equal(topic=topic, partition=partition), ("status", "<>", "MISSING")]))


def check_captured(run: StoredRun, topic: str, partition: int | None = None) -> None:
    """Raises UsageError if no copy was audited, with the name that may be meant."""
    if not is_captured(run, topic, partition):
        named = topic if partition is None else f"{topic}-{partition}"
        known = _captured(run, is_whole=partition is not None)
        raise UsageError(f"no copy of {named} was audited in this run{meant(named, known)}")


def known_subject(run: StoredRun, words: Sequence[str]) -> Row:
    """The first reading that is in the tables. Raises UsageError if none is, with the name that may be meant."""
    for reading in readings(words):
        if "topic" in reading:
            if is_captured(run, reading["topic"], reading["partition"]):
                return reading
            if len(words) > 1:
                check_captured(run, reading["topic"], reading["partition"])
        elif run.number("producer_states" if "producer_id" in reading else "transactional_ids", "count(*)", equal(**reading)):
            return reading
    named = " ".join(words)
    raise UsageError(f"no captured log has {named}{meant(named, [*_captured(run, is_whole=True), *_transactional_ids(run)])}")


def open_place(run: StoredRun, words: Sequence[str]) -> tuple[str, int, int]:
    """Topic, partition and first offset of an open transaction that words name: one there, or of an id.

    Of several, the one with the lowest offset, which blocks its partition. Raises UsageError if none is open there.
    """
    order = '"start_offset", "topic", "partition"'
    for reading in readings(words):
        if found := run.rows("open_transactions", _COLUMNS, equal(**reading), order=order, limit=1):
            return found[0]["topic"], found[0]["partition"], found[0]["start_offset"]
    known = known_subject(run, words)
    if "start_offset" in known:
        return known["topic"], known["partition"], known["start_offset"]  # and `explain` says what is open there
    raise UsageError(f"nothing is open of {' '.join(words)}", hint=f"{own_command(run.tables.root, 'open')} lists what is")


def _transactional_ids(run: StoredRun) -> list[str]:
    """The transactional ids among which to seek the one that is meant."""
    return [row["transactional_id"] for row in run.rows("transactional_ids", ("transactional_id",), limit=_MOST_NAMES)]


def _captured(run: StoredRun, *, is_whole: bool) -> list[str]:
    """The topics that were captured, or their partitions."""
    rows = run.rows("coverage", ("topic", "partition"), [("status", "<>", "MISSING")], limit=_MOST_NAMES)
    return [f"{row['topic']}-{row['partition']}" if is_whole else row["topic"] for row in rows]
