"""The tables of kafka-transactions.sh, to the byte and in its order. Recorded output decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import live_output
from txnlib.ask.kafka_table import find_hanging_table, hash_order, long_hash, partition_hash, pretty_table

CAPTURES = (
    "quickstart",
    "causes-3.9",
    "cluster-3.9",
    "hostile-3.9",
    "hostile-4.3",
    "expired-3.7",
    "real-clients-4.2",
    "damaged-3.8",
)


@pytest.fixture(scope="module", params=CAPTURES)
def printed(request, captures: Path) -> list[Path]:
    """What the tool printed, where it did not fail."""
    kinds = ("list", "describe-[0-9]*", "describe-producers-*", "*find-hanging-*")
    found = [path for kind in kinds for path in sorted((captures / request.param / "live").glob(f"{kind}.txt"))]
    return [path for path in found if path.read_text() and not live_output.failed(path)]


def test_cells_are_padded_as_the_tool_pads_them(printed):
    """An id with a tab prints as two cells, so their table cannot be read back."""
    assert printed
    for path in printed:
        lines = path.read_text().splitlines()
        if any(line.count("\t") != lines[0].count("\t") for line in lines):
            continue
        header, *rows = ([cell.rstrip(" ") for cell in line.split("\t")[:-1]] for line in lines)
        assert pretty_table(header, rows) == path.read_text(), path


def test_an_id_with_a_tab_is_printed_as_it_is_and_anything_else_that_moves_the_cursor_is_not():
    assert pretty_table(("A", "B"), [("a\tb", 1)]) == "A  \tB\t\na\tb\t1\t\n"
    assert pretty_table(("A",), [("a\nb\x1b",)]) == "A       \t\na\\nb\\x1b\t\n"


def test_width_counts_utf_16_units():
    assert pretty_table(("A",), [("🦄",), ("abc",)]) == "A  \t\n🦄 \t\nabc\t\n"


def test_producers_come_in_the_order_of_javas_hash_table(printed):
    """Within a bucket they stand as they came, which the tool does not print; so they are put in as they come out."""
    paths = [path for path in printed if path.name.startswith("describe-producers")]
    for path in paths:
        ids = [int(row["ProducerId"]) for row in live_output.table(path)]
        assert hash_order(ids, long_hash) == ids
        size = next(size for size in (16, 32, 64, 128) if len(ids) <= size * 0.75)
        last_bucket_first = [i for number in reversed(range(size)) for i in ids if (i ^ i >> 16) % size == number]
        assert hash_order(last_bucket_first, long_hash) == ids, path


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (1, 1), (2**31, 2**31), (2**32, 1), (2**32 + 1, 0), (2**63 - 1, 0x80000000)]
)
def test_long_hash_is_javas(value, expected):
    assert long_hash(value) == expected


def test_partition_hash_is_kafkas():
    assert partition_hash("a", 0) == 31 * 31 + ord("a")
    assert partition_hash("a", 2) == 31 * 33 + ord("a")


def test_a_table_grows_when_it_is_three_quarters_full():
    twelve, thirteen = [*range(16, 5, -1), 0], [*range(16, 5, -1), 0, 32]
    assert hash_order(twelve, long_hash)[:2] == [16, 0], "one bucket of sixteen: as they came"
    assert hash_order(thirteen, long_hash)[:2] == [0, 32], "of thirty-two: 16 has one of its own"
    assert hash_order(twelve, long_hash, holds=13)[0] == 0


@pytest.mark.parametrize(
    ("last_write", "minutes"),
    [(2**63 - 1, -153_722_837_880_912), (1_763_711_999_000_000, -29_365_799_983), (-(2**63) + 1, -153_722_837_880_912)],
)
def test_an_odd_time_is_printed_as_the_tool_prints_it(last_write, minutes):
    row = {
        "topic": "a",
        "partition": 0,
        "producer_id": 7,
        "producer_epoch": 0,
        "coordinator_epoch": 0,
        "start_offset": 0,
    }
    text = find_hanging_table([row | {"last_timestamp_ms": last_write}], 1_764_000_000_000, producers={})
    assert text.splitlines()[1].split()[-2:] == [str(last_write), str(minutes)]
