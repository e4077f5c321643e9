"""Random text as people have it, and payloads that imitate a dump.

No row is invented or moved, and a lost one is told. A text is some dumps one after the other. Then it is cut at its
end, gets a prefix, prose, blank lines or other line ends. A payload, a key, a header key or a transactional id may
imitate whatever a dump has.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from tests.support.dumps import Batch, Record, marker, print_dump, rows

DIRECTORY: Final = "/var/lib/kafka/data"
COORDINATOR: Final = "__transaction_state"
Chance = random.Random
COUNTS = pytest.mark.parametrize("seeds", [range(60), pytest.param(range(1_000, 4_000), marks=pytest.mark.slow)])


class Dump(NamedTuple):
    """The text of a dumped segment, and what it tells."""

    text: bytes
    truth: Counter[tuple[Any, ...]]


# ---- Dumps


def dumps(chance: Chance, value: Callable[[], bytes], *, contents: bool) -> list[Dump]:
    """Dumps of different partitions, some of them written together."""
    common = batches(chance, value)
    made = []
    for number in range(chance.randrange(1, 4)):
        if chance.random() < 0.3:
            made.append(coordinator_dump(chance, value, number))
            continue
        # Header keys have no sizes: only the line that follows them shows where they end.
        log = [*(common if chance.random() < 0.4 else batches(chance, value)), Batch()]
        path = f"{DIRECTORY}/orders-{number}/{0:020}.log"
        is_deep = contents or chance.random() < 0.7
        plain = [batch if batch.marker else replace(batch, records=(Record(),) * len(batch.records)) for batch in log]
        truth = told(print_dump(*plain, path=path)) + (markers(print_dump(*plain, path=path)) if is_deep else Counter())
        made.append(Dump(print_dump(*log, path=path, deep=is_deep, contents=contents), truth))
    return made


def batches(chance: Chance, value: Callable[[], bytes]) -> list[Batch]:
    made = []
    for _ in range(chance.randrange(6)):
        producer = chance.randrange(4_000, 4_004)
        if chance.random() < 0.3:
            made.append(marker(chance.choice(["COMMIT", "ABORT"]), producer))
        else:
            records = tuple(Record(value(), value(), header_keys(chance)) for _ in range(chance.randrange(1, 3)))
            made.append(Batch(records, producer, size=chance.choice([100, 120, 400])))
    return made


def header_keys(chance: Chance) -> tuple[bytes, ...]:
    return (b"traceparent", b"a]b") if chance.random() < 0.3 else ()


def coordinator_dump(chance: Chance, value: Callable[[], bytes], number: int) -> Dump:
    is_json = chance.random() < 0.5
    made, truth = [], Counter[tuple[Any, ...]]()
    for producer in range(chance.randrange(1, 5)):
        name = value().decode(errors="ignore")[:200] or "id"
        raw = b"\0\0\0\0" + name.encode()
        key = b"transaction_metadata::transactionalId=" + name.encode()
        printed = (
            b"producerId:%d,producerEpoch:0,state=Ongoing,partitions=[orders-0],txnLastUpdateTimestamp=5,txnTimeoutMs=60000"
            % producer
        )
        if is_json:
            key = json.dumps({"type": "0", "data": {"transactionalId": name}}, separators=(",", ":")).encode()
            data = {
                "producerId": producer, "producerEpoch": 0, "transactionTimeoutMs": 60_000, "transactionStatus": 1,
                "transactionPartitions": [], "transactionLastUpdateTimestampMs": 5, "transactionStartTimestampMs": 5,
            }  # fmt: skip
            printed = json.dumps({"version": "0", "data": data}, separators=(",", ":")).encode()
        is_tombstone = chance.random() < 0.2
        record = Record(
            raw,
            None if is_tombstone else b"v" * 55,
            printed_key=key,
            printed_value=b"<DELETE>" if is_tombstone else printed,
        )
        state = None if is_tombstone else "Ongoing"
        truth[COORDINATOR, number, len(made), None if is_tombstone else producer, state] += 1
        made.append(Batch((record,), producer_id=-1))
    path = f"{DIRECTORY}/{COORDINATOR}-{number}/{0:020}.log"
    return Dump(print_dump(*made, path=path, contents=True), truth + told(print_dump(*made, path=path, deep=False)))


# ---- What people and their tools make of a text


PROSE: Final = [
    b"Then the coordinator's partition:", b"```", b"$ kafka-dump-log.sh --files 0.log", b"", b"isTransactional: true",
    b"[2026-11-22 09:58:00,123] WARN nothing (kafka.X)", b"  -1 is followed by 3", b"| a | table |", b"Dumping core",
]  # fmt: skip
PREFIXES: Final[list[Callable[[int], bytes]]] = [
    lambda number: b"kafka-1  | ",
    lambda number: b"2026-11-22T09:58:%02d.123456789Z " % (number % 60),
    lambda number: b"%6d\t" % number,
    lambda number: b"notes/dump.txt:%d:" % number,
    lambda number: b"> ",
    lambda number: b"    ",
    lambda number: b"Nov 22 09:58:%02d broker-1 kafka[123]: " % (number % 60),
    lambda number: b"\x1b[36mkafka-1\x1b[0m | ",
]


def as_shipped(line: bytes) -> bytes:
    return json.dumps({"log": line.decode(errors="replace") + "\n", "stream": "stdout"}).encode()


def with_prose(chance: Chance, made: list[Dump]) -> bytes:
    """Prose between dumps."""
    parts = []
    for dump in made:
        parts += [line + b"\n" for line in chance.choices(PROSE, k=chance.randrange(3))]
        parts.append(dump.text)
    return b"".join(parts)


def dressed(chance: Chance, text: bytes) -> bytes:
    """The text with something on each line."""
    kind = chance.choice(["bare", "bare", "prefix", "prefix", "converted", "padded", "shipped"])
    lines = text.split(b"\n")
    if kind == "prefix":
        prefix = chance.choice(PREFIXES)
        lines = [prefix(number) + line for number, line in enumerate(lines[:-1])] + [b""]
    elif kind == "converted":
        lines = [line + b"\r" for line in lines[:-1]] + [b""]
    elif kind == "padded":
        lines = [line + b"  " for line in lines[:-1]] + [b""]
    elif kind == "shipped":
        lines = [as_shipped(line) for line in lines[:-1]] + [b""]
    return b"\n".join(lines)


# ---- The law


NAMES: Final = ("topic", "partition", "base_offset", "last_offset", "position", "producer_id", "is_control")
RECORD_NAMES: Final = ("topic", "partition", "offset", "producer_id", "state")


def told(text: bytes) -> Counter[tuple[Any, ...]]:
    found = Counter(tuple(row[name] for name in NAMES) for row in rows("record_batches", text))
    return found + Counter(tuple(row[name] for name in RECORD_NAMES) for row in rows("transaction_log", text))


def markers(text: bytes) -> Counter[tuple[Any, ...]]:
    return Counter(
        (row["topic"], row["partition"], row["base_offset"], row["control_type"])
        for row in rows("record_batches", text)
        if row["control_type"] is not None
    )


def is_lowered(text: bytes) -> bool:
    """Whether something harmful is told of the text."""
    harmless = ("NOT_DUMP_TEXT", "LINE_FORM")
    return any(
        row["tail"] != "CLEAN" or any(not bad["reason"].startswith(harmless) for bad in row["unreadable"])
        for row in rows("segments", text)
    )


def holds(text: bytes, made: list[Dump], seed: object, *, is_cut: bool = False) -> None:
    truth = sum((dump.truth for dump in made), Counter[tuple[Any, ...]]())
    found = told(text) + markers(text)
    assert not found - truth, (seed, found - truth, text.decode(errors="replace"))
    assert is_cut or not truth - found or is_lowered(text), (seed, truth - found, text.decode(errors="replace"))


def ordinary(chance: Chance) -> Iterator[bytes]:
    """Payloads of one line or several, and not all of them in ASCII."""
    return iter(
        lambda: chance.choice(
            [b"v", b"", b'{"amt":10}', b"two\nlines", "gr\u00fcn".encode(), b"{\n  1\n}\n", b"what?"]
        ),
        None,
    )


@COUNTS
def test_ordinary_text_loses_no_row_in_silence(seeds: range) -> None:
    for seed in seeds:
        chance = Chance(f"ordinary {seed}")
        values = ordinary(chance)
        made = dumps(chance, lambda values=values: next(values), contents=chance.random() < 0.5)
        text = dressed(chance, with_prose(chance, made))
        is_cut = chance.random() < 0.3
        holds(text[: chance.randrange(len(text) + 1)] if is_cut else text, made, seed, is_cut=is_cut)


# ---- Imitations


def imitation(chance: Chance, producer: int = 666) -> bytes:
    """Lines of a dump, as a payload may have them."""
    topic = chance.choice(["orders", "payments", COORDINATOR])
    log = [Batch(producer_id=producer), marker(chance.choice(["COMMIT", "ABORT"]), producer)]
    start = chance.choice([(0, 0), (1, 120), (2, 120), (2, 240), (1, 100), (2, 400)])
    path = f"{DIRECTORY}/{topic}-{chance.randrange(3)}/{0:020}.log"
    lines = print_dump(*log, path=path, start=start, contents=chance.random() < 0.5).split(b"\n")
    if chance.random() < 0.5:
        lines = lines[2:]
    chance.shuffle(lines) if chance.random() < 0.2 else None
    before = chance.choice([b"x", b"", b"]", b"x]", "\u00e4\u00f6?".encode(), b"a payload: b"])
    return b"\n".join([before, *lines[: chance.randrange(1, len(lines) + 1)], *chance.choices([b"y", b"]", b""], k=1)])


@COUNTS
@pytest.mark.parametrize("where", ["contents", "header keys"])
def test_imitations_become_no_row_and_hide_none_in_silence(where: str, seeds: range) -> None:
    for seed in seeds:
        chance = Chance(f"hostile {where} {seed}")
        values = ordinary(chance)

        def value(chance: Chance = chance, values: Iterator[bytes] = values) -> bytes:
            return imitation(chance) if where == "contents" and chance.random() < 0.4 else next(values)

        made = dumps(chance, value, contents=where == "contents" or chance.random() < 0.5)
        if where == "header keys":
            made = [dump._replace(text=dump.text.replace(b"a]b", imitation(chance))) for dump in made]
        text = with_prose(chance, made)
        if chance.random() < 0.2:
            text = text.decode().encode("ascii", "replace")
        holds(dressed(chance, text), made, seed)


@COUNTS
def test_header_keys_of_last_records_give_no_row_to_another_partition(seeds: range) -> None:
    for seed in seeds:
        chance = Chance(f"last {seed}")
        texts = []
        for number in range(chance.randrange(1, 4)):
            keys = chance.choice([b"x", b"]", b"] headerKeys: []"]), b"]\n" + imitation(chance, 666 + number)
            last = Batch((Record(header_keys=keys if chance.random() < 0.6 else ()),), size=4_000)
            path = f"{DIRECTORY}/orders-{number}/{0:020}.log"
            texts.append(print_dump(*batches(chance, lambda: b"v"), last, path=path, contents=chance.random() < 0.5))
        text = dressed(chance, b"".join(texts))
        found = {(row["topic"], row["partition"], row["producer_id"]) for row in rows("record_batches", text)}
        forged = {place for place in found if place[2] is not None and place[2] < 4_000}
        assert forged <= {("orders", number, 666 + number) for number in range(3)}, (seed, forged, text.decode())
        assert rows("transaction_log", text) == []
