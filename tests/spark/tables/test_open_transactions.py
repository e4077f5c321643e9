"""The open transactions that count in a damaged log."""

from tests.support.frames import frame
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.open_transactions import foremost

SEEN = [
    # partition, producer, start, verdict, blocked offsets
    (0, 1, 30, "UNKNOWN", 9),
    (0, 2, 10, "OPEN", 1),
    (0, 3, 20, "OPEN", 2),
    (0, 4, 40, "HANGING", None),
    (0, 5, 50, "HANGING", 5),
    (0, 6, 60, "LATE", 7),
    (1, 7, 10, "OPEN", 1),
]


def test_the_first_two_of_each_partition_and_the_most_urgent_others_count(spark):
    names = ("partition", "producer_id", "start_offset", "verdict", "blocked_offsets")
    rows = frame(
        spark,
        TABLES["open_transactions"],
        *[{"topic": "orders", **dict(zip(names, each, strict=True))} for each in SEEN],
    )

    def chosen(most):
        found = foremost(rows, most=most)
        assert found.columns == TABLES["open_transactions"].names
        return {row["producer_id"] for row in found.collect()}

    assert chosen(0) == {2, 3, 7}
    assert chosen(2) == {2, 3, 7, 6, 5}
    assert chosen(3) == {2, 3, 7, 6, 5, 4}
    assert chosen(9) == {each[1] for each in SEEN}
