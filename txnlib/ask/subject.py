"""The words of a command, as names of partitions and ids."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.ask.own_command import own_command
from txnlib.ask.queries import AUDIT_RUNS, Filter, Row, StoredRun, among
from txnlib.errors import UsageError, meant

_DIGITS: Final = "[0-9]{1,18}"
_NUMBER: Final = re.compile(_DIGITS)
_PRODUCER: Final = re.compile(rf"(?:producer (?:id )?)?({_DIGITS})(?: epoch {_DIGITS})?(?: \(.+\))?")
#: A partition, and an offset of it, as answers print them: `payments-0`, `payments-0 @24`, `payments-0 from offset 24
#: on`.
_PARTITION: Final = rf"(?P<topic>\S+)[- ](?P<partition>{_DIGITS})"
_OFFSET: Final = rf"(?:(?: ?[@:]|(?: from)? offset | )(?P<start_offset>{_DIGITS}))(?: on)?"
#: Anchors of the report page, and whole addresses with one: `#payments-0-24`, `#plan:payments-0-24`, `#lag:payments-0`.
_ANCHORS: Final = (rf".*#(?:plan:)?{_PARTITION}-(?P<start_offset>{_DIGITS})", rf".*#lag:{_PARTITION}")
_PLACES: Final = tuple(map(re.compile, (*_ANCHORS, _PARTITION, _PARTITION + _OFFSET)))
#: The topic in which groups commit their offsets.
GROUPS_TOPIC: Final = "__consumer_offsets"
#: What is copied with a name, from JSON, a path or a sentence.
_AROUND: Final = " \t\"'`/:,;"
#: What follows a partition, whether it is an offset or not.
_BEFORE_OFFSET: Final = re.compile("(?<=[0-9])[@:].*")
_COLUMNS: Final = ("topic", "partition", "start_offset")
#: Most names of a kind among which to seek the one that is meant.
_MOST_NAMES: Final = 10_000


def readings(words: Sequence[str]) -> list[Row]:
    """What words may name, the likeliest first: for each reading, columns with their values. The last readings leave
    out what was copied with the name, such as quotes.

    One word is read as an id first, because a partition can also be written as two words.
    """
    named = " ".join(words)
    ids: list[Row] = [{"transactional_id": named}]
    if number := _PRODUCER.fullmatch(named):
        ids.append({"producer_id": int(number[1])})
    places = [_numbered(place.groupdict()) for pattern in _PLACES if (place := pattern.fullmatch(named))]
    if len(words) in (2, 3) and all(map(_NUMBER.fullmatch, words[1:])):
        found = [_numbered(dict(zip(_COLUMNS, words, strict=False))), *ids, *places]
    else:
        found = [*ids, *places]
    if " of " in named:  # a transactional id and its application, as the report prints them
        found.append({"transactional_id": named.rpartition(" of ")[0]})
    inner = named.strip(_AROUND)
    return found if inner in ("", named) else [*found, *readings([inner])]


def _numbered(place: Row) -> Row:
    return {name: text if name == "topic" else int(text) for name, text in place.items()}


def place_in(words: Sequence[str]) -> Row | None:
    """The partition that words may name, and an offset of it if they have one; None if they can only be an id."""
    return next((reading for reading in readings(words) if "topic" in reading), None)


def take_place(options: Namespace) -> None:
    """Makes the partition that the words `where` name the value of --topic and --partition. Raises UsageError if they
    name none, or if these options are given, too."""
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
    return bool(
        run.number("coverage", "count(*)", [*equal(topic=topic, partition=partition), ("status", "<>", "MISSING")])
    )


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
        elif run.number(
            "producer_states" if "producer_id" in reading else "transactional_ids", "count(*)", equal(**reading)
        ):
            return reading
    named, place = " ".join(words), place_in(words)
    if len(words) > 1 and place is not None and _NUMBER.fullmatch(words[1]) and not _PRODUCER.fullmatch(named):
        check_captured(run, place["topic"], place["partition"])
    like, at, partitions = _BEFORE_OFFSET.sub("", named.strip(_AROUND)), "", _captured(run, is_whole=True)
    own = [name for name in partitions if name.rpartition("-")[0].casefold() == like.casefold()]
    if own:
        first = min(own, key=lambda name: (len(name), name))
        raise UsageError(f"{first.rpartition('-')[0]} is a topic; name a partition of it, such as {first}")
    if place is not None and "start_offset" in place:
        like, at = f"{place['topic']}-{place['partition']}", f"@{place['start_offset']}"
    raise UsageError(f"no captured log has {named}{_meant(run, like, at, partitions)}")


def _meant(run: StoredRun, like: str, at: str, partitions: Sequence[str]) -> str:
    """The names that words may mean, as the end of a message: a partition, an id and a run that begin like the words,
    else the most similar name."""
    ids, runs = (
        [row[name] for row in of.rows(table, (name,), limit=_MOST_NAMES)]
        for of, table, name in ((run, "transactional_ids", "transactional_id"), (run.tables, AUDIT_RUNS, "run_id"))
    )
    begun = [
        f"{before}{min(found, key=lambda name: (len(name), name))}{after}"
        for before, names, after in (("", partitions, at), ("", ids, ""), ("--run ", runs, ""))
        if (found := [name for name in names if like and name.casefold().startswith(like.casefold())])
    ]
    return f"; did you mean {' or '.join(begun)}?" if begun else meant(like, [*partitions, *ids], at)


def open_place(run: StoredRun, words: Sequence[str]) -> tuple[str, int, int]:
    """Topic, partition and first offset of an open transaction that words name, by its partition or by its id.

    Of several, one that holds its partition; of these, the one behind which most offsets wait. Raises UsageError if
    none is open there.
    """
    order = 'coalesce("holds", FALSE) DESC, "blocked_offsets" DESC NULLS LAST, "start_offset", "topic", "partition"'
    for reading in readings(words):
        if found := run.rows("open_transactions", _COLUMNS, equal(**reading), order=order, limit=1):
            return found[0]["topic"], found[0]["partition"], found[0]["start_offset"]
    known = known_subject(run, words)
    if "start_offset" in known:
        return known["topic"], known["partition"], known["start_offset"]  # and `explain` says what is open there
    where = f"on {known['topic']}-{known['partition']}" if "topic" in known else f"of {' '.join(words)}"
    raise UsageError(f"nothing is open {where}", hint=f"{own_command(run.tables.root, 'open')} lists what is")


def holders_of(run: StoredRun, rows: Sequence[Row]) -> dict[tuple[str, int], Row]:
    """Topic and partition of these rows -> the row of `partitions` that names the holder. Partitions without a holder
    are left out."""
    columns = ("topic", "partition", "blocking_producer_id", "blocking_transactional_id", "last_stable_offset")
    found = run.rows("partitions", columns, among(rows, "topic", "partition"), is_optional=True)
    return {(row["topic"], row["partition"]): row for row in found if row["blocking_producer_id"] is not None}


def _captured(run: StoredRun, *, is_whole: bool) -> list[str]:
    """The topics that were captured, or their partitions."""
    rows = run.rows("coverage", ("topic", "partition"), [("status", "<>", "MISSING")], limit=_MOST_NAMES)
    return [f"{row['topic']}-{row['partition']}" if is_whole else row["topic"] for row in rows]
