"""Random damage to the files beside the logs, and to file names.

Seeds are fixed: a failure is found again. Many of them are run by ./run-tests.sh slow.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64
from txnlib.errors import ConfigError, UnreadableInputError
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import list_capture
from txnlib.readers.table_readers import read_table

SEEDS = pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(1_000, 4_000), marks=pytest.mark.slow)], ids=["few", "many"]
)
ENTRIES = [f"topic-{n} {n} {n * 1_000}" for n in range(6)]
HELPERS = {
    "replication-offset-checkpoint": "\n".join(["0", "6", *ENTRIES, ""]).encode(),
    "orders-0/leader-epoch-checkpoint": b"0\n3\n0 0\n4 120\n7 9000\n",
    "orders-0/partition.metadata": b"version: 0\ntopic_id: 3fK2vCqkR0Ob3kXh4pVd2Q\n",
}
NOTES = json.dumps(
    {
        "cluster": "eu",
        "kafka_version": "3.9.1",
        "captured_at_ms": {"default": 1_795_247_172_000, "1/orders-0": 1_795_247_171_000},
        "coordinator_partitions": 50,
        "transaction_version": 2,
        "broker_settings": {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000"},
        "partitions": {"orders-0": {"leader": 1, "replicas": [1, 2, 3]}},
    }
).encode()
#: What is put in the place of a number, or anywhere.
ODD = (
    b"9" * 5_000,
    b"18446744073709551616",
    b"9223372036854775808",
    b"2147483648",
    b"-1",
    b"1e400",
    b"true",
    b"null",
    b'"7"',
    b"\xff\xfe",
    b"\x00",
    "\u0663\u00b2".encode(),
    b"\\ud800",
    b"[" * 2_000,
    b"\n",
)
NAMES = (
    b"orders-2147483648",
    b"orders-2147483647",
    b"orders-" + b"9" * 200,
    b"orders--1",
    b"-0",
    b"or\xffders-0",
    b"\xff\xfe-\xfd",
    "orders-\u0663".encode(),
    b"a\nb-0",
    b"\\xff-0",
    b"x" * 250 + b"-0",
    b"99999999999999999999.log",
    b"09223372036854775808.log",
    b"09223372036854775807.log",
    b"00000000000000000007.log",
    b"99999999999999999999.snapshot",
    b"99999999999999999999.txnindex",
    "\u0660".encode() * 20 + b".log",
    b"leader-epoch-checkpoint",
    b"replication-offset-checkpoint",
    b"capture.json.gz",
    b"-rf",
)


def damaged(content: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(content) + 1)
        how = chance.randrange(5)
        if how == 0 and content:
            at %= len(content)
            content = content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
        elif how == 1:
            content = content[:at]
        elif how == 2:
            content = content[:at] + chance.choice(ODD) + content[at:]
        elif how == 3:
            digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                at = chance.choice(digits)
                content = content[:at] + chance.choice(ODD) + content[at + 1 :]
        else:
            content = content[:at] + content[at : at + 20] * 3 + content[at:]
    return content


def read_all_tables(capture: Path) -> None:
    """Reads every file for every table; rows are checked by Arrow, and here against what Spark takes."""
    listed = list_capture([str(capture)])
    for table in arrow_schemas.TABLES:
        for file in listed.files:
            for batch in read_table(table, file):
                batch.validate(full=True)
                for row in batch.to_pylist():
                    assert row.get("partition") is None or 0 <= row["partition"] <= MAX_INT32
                    assert all(abs(row[name] or 0) <= MAX_INT64 for name in ("value", "start_offset") if name in row)
    assert any(file.topic == "orders" and file.size for file in listed.files), "the good segment is still read"


def new_capture(folder: Path) -> Path:
    """A folder with a good segment."""
    (folder / "orders-0").mkdir(parents=True)
    (folder / "orders-0" / f"{0:020}.log").write_bytes(to_bytes(T(1, 0, 0, at=0)))
    return folder


def fuzz_helpers(capture: Path, seed: int) -> None:
    chance = random.Random(seed)
    for name, content in HELPERS.items():
        (capture / name).write_bytes(damaged(content, chance))
    read_all_tables(capture)


def fuzz_notes(capture: Path, seed: int) -> None:
    (capture / "capture.json").write_bytes(damaged(NOTES, random.Random(seed)))
    said = f"{capture}/capture.json"
    try:
        read_all_tables(capture)
    except (ConfigError, UnreadableInputError) as error:
        said = str(error)
    assert said.encode().startswith(os.fsencode(capture))


def fuzz_names(capture: Path, seed: int) -> None:
    chance = random.Random(seed)
    place = os.fsencode(capture / chance.choice(["", "orders-0"]))
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(NAMES)
        if chance.random() < 0.3:
            name = bytes(chance.choice(b"ab-09._\xff\\\xc3\xa9 \n") for _ in range(chance.randint(1, 40)))
        if name not in (b".", b".."):
            place = os.path.join(place, name)
            if os.path.isfile(place) or (not os.path.isdir(place) and chance.random() < 0.4):
                break
            os.makedirs(place, exist_ok=True)
    if os.path.isdir(place):
        place = os.path.join(place, f"{3:020}.log".encode())
    with open(place, "wb") as stream:
        stream.write(to_bytes(T(1, 0, 0, at=3)))
    read_all_tables(capture)


FUZZES = pytest.mark.parametrize("fuzz", [fuzz_helpers, fuzz_notes, fuzz_names])


@SEEDS
@FUZZES
def test_no_damage_raises_anything_of_others(tmp_path, fuzz: Callable[[Path, int], None], seeds: range):
    for seed in seeds:
        fuzz(new_capture(tmp_path / str(seed)), seed)
