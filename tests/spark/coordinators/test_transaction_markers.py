"""The stored match: what Spark pairs and the core matches, together."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from tests.support.frames import frame
from txnlib.core.rows import TopicPartition
from txnlib.core.verdicts.dossier import CoordinatorDecision, WrittenMarker
from txnlib.core.verdicts.match import MarkerGroup, StoredMatch, stored_match
from txnlib.core.verdicts.whose_clock import Clocks, Difference
from txnlib.spark.coordinators import transaction_markers
from txnlib.spark.coordinators.transaction_markers import decision_markers
from txnlib.spark.core_rows import struct_of
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES

NOON = 1_710_000_000_000
GROUPS = 800
#: Broker 1 leads the coordinator in its leader epochs 0 and 2, broker 2 in 1. Brokers 1, 2 and 3 lead two partitions
#: each, and broker 1 led before. Broker 3 was compared with neither. The beginning of odd partitions is gone.
CLOCKS = Clocks(
    named={
        ("__transaction_state", 3): {0: "1", 1: "2", 2: "1"},
        **{("orders", number): {0: "1", 1: "123"[number // 2]} for number in range(6)},
    },
    begun=frozenset(("orders", number) for number in (0, 2, 4)),
    measured={
        ("1", "2"): Difference(offset_ms=-150, error_ms=20, differ_ms=1_000),
        ("2", "1"): Difference(offset_ms=150, error_ms=20, differ_ms=1_000),
    },
)
#: How far each broker's clock is ahead.
AHEAD = {"1": 0, "2": -150, "3": -2_000}
INSTANCES = (
    "transactional_id string, coordinator_partition int, transaction_number long, producer_id long, producer_epoch int,"
    " state string, outcome string, start_ms long, prepared_ms long, decided_ms long, acknowledged_ms long,"
    " completed_ms long, partitions array<struct<topic: string, partition: int>>, transaction_version int,"
    " first_record_offset long, last_record_offset long, client_version int, decided_producer_id long,"
    " decided_epoch int, decided_coordinator_epoch int, stamped_epoch int"
)


def random_group(random: Random, number: int) -> MarkerGroup:
    """Decisions in quick succession, with markers that are mostly theirs."""
    decisions, markers, at, offset, epoch = [], [], NOON, 0, 0
    is_tidy, partition = random.random() < 0.5, random.randrange(6)

    def by(broker: str) -> int:
        return at + AHEAD[broker]

    def marker(outcome: str, **odd: Any) -> None:
        nonlocal offset
        offset += random.randrange(2, 4)
        leader_epoch = int(at > NOON + 600_000)
        ms = by(CLOCKS.named["orders", partition][leader_epoch])
        written = {"type": outcome, "epoch": 4, "coordinator_epoch": epoch, "ms": ms, "leader_epoch": leader_epoch}
        ended = None if not is_tidy and random.random() < 0.2 else offset - 1
        markers.append(WrittenMarker(offset=offset, first_offset=ended, **{**written, **odd}))

    for n in range(random.randrange(9)):
        before, epoch = epoch, min(2, epoch + (random.random() < 0.2))
        prepared = before if random.random() < 0.3 else epoch
        first, last = (CLOCKS.named["__transaction_state", 3][each] for each in (prepared, epoch))
        outcome = random.choice(("COMMIT", "ABORT"))
        at += random.choice((5, 50, 500, 400_000))
        start, began = by(first), by(first) + 3
        if not is_tidy and random.random() < 0.2:
            marker(random.choice(("COMMIT", "ABORT")), ms=random.choice((None, at, at - 500)))
        at += 3
        for _ in range(1 if is_tidy else random.choice((0, 1, 1, 1, 1, 2))):
            at += random.choice((1, 10, 100))
            is_odd = not is_tidy and random.random() < 0.1
            odd = {"type": None, "epoch": 5, "coordinator_epoch": None, "leader_epoch": 7}
            marker(outcome, **dict([random.choice(list(odd.items()))] if is_odd else []))
        at += random.choice((1, 30))
        is_lone = not is_tidy and random.random() < 0.1
        decisions.append(
            CoordinatorDecision(
                transactional_id=f"id-{number}",
                transaction_number=n,
                coordinator_partition=3,
                outcome=outcome,
                first_epoch=4,
                decided_epoch=None if is_lone else 4,
                coordinator_epoch=None if is_lone else prepared,
                stamped_epoch=None if not is_tidy and random.random() < 0.05 else epoch,
                partitions=None if is_lone else (TopicPartition("orders", partition),),
                first_record_offset=10 * n,
                last_record_offset=10 * n if is_lone else 10 * n + 2,
                start_ms=start,
                said_ms=None if not is_tidy and random.random() < 0.05 else began,
                completed_ms=None if random.random() < 0.05 else by(last),
            )
        )
    return MarkerGroup(topic="orders", partition=partition, decisions=tuple(decisions), markers=tuple(markers))


def rows_of_group(number: int, group: MarkerGroup) -> Iterator[tuple[dict, None] | tuple[None, dict]]:
    for each in group.decisions:
        listed = None if each.partitions is None else [{"topic": group.topic, "partition": group.partition}]
        names = ("transactional_id", "coordinator_partition", "transaction_number", "outcome", "start_ms")
        names += ("completed_ms", "first_record_offset", "last_record_offset", "decided_epoch", "stamped_epoch")
        own = {name: getattr(each, name) for name in names}
        own |= {"producer_id": number, "decided_producer_id": number, "producer_epoch": each.first_epoch}
        own |= {"decided_ms": each.said_ms, "decided_coordinator_epoch": each.coordinator_epoch, "partitions": listed}
        yield own, None
    for marker in group.markers:
        names = ("offset", "type", "epoch", "coordinator_epoch", "ms", "leader_epoch")
        own = {f"marker_{name}": getattr(marker, name) for name in names}
        place = {"topic": group.topic, "partition": group.partition, "producer_id": number}
        yield None, place | own | {"first_offset": marker.first_offset}


@pytest.fixture(scope="module")
def groups() -> dict[int, MarkerGroup]:
    random = Random(58)
    return {number: random_group(random, number) for number in range(GROUPS)}


#: Transaction -> the marker that is stored for it, or those that may be its own.
Stored: TypeAlias = dict[tuple[str, int], tuple[int | None, list[int] | None]]


def rows_stored(spark, groups) -> list[tuple[Row, Row]]:
    """Each transaction, with each of its partitions."""
    rows = [row for number, group in groups.items() for row in rows_of_group(number, group)]
    names = [part.split()[0] for part in INSTANCES.replace("struct<topic: string, partition: int>", "x").split(", ")]
    instances = local_rows(spark, [[one.get(name) for name in names] for one, _ in rows if one], INSTANCES)
    spans = frame(spark, TABLES["producer_spans"], *[span for _, span in rows if span])
    rows = decision_markers(instances, spans, CLOCKS).collect()
    return [(row, each) for row in rows for each in row["markers"]]


def stored(spark, groups) -> Stored:
    return {
        (row["transactional_id"], row["transaction_number"]): (each["marker_offset"], each["possible_offsets"])
        for row, each in rows_stored(spark, groups)
    }


def by_matcher(groups) -> Stored:
    found = {}
    for group in groups.values():
        for each, match in zip(group.decisions, stored_match(group, CLOCKS), strict=True):
            marker = None if match.number is None else group.markers[match.number].offset
            possible = None if match.possible_offsets is None else [*match.possible_offsets]
            found[each.transactional_id, each.transaction_number] = marker, possible
    return found


def test_the_stored_match_is_the_matchers(spark, groups):
    found, expected = stored(spark, groups), by_matcher(groups)
    assert {key: found.get(key, (None, None)) for key in expected} == expected


def test_what_spark_pairs_alone_is_right(spark, groups, monkeypatch):
    monkeypatch.setattr(
        transaction_markers,
        "markers_by_core",
        lambda clocks: lambda group: F.lit(None).cast(ArrayType(struct_of(StoredMatch))),
    )
    expected = by_matcher(groups)
    alone = {key: found for key, found in stored(spark, groups).items() if found[0] is not None}
    assert {key: expected[key] for key in alone} == alone
    assert len(alone) > 0.3 * sum(marker is not None for marker, _ in expected.values())


def three_transactions(**last: Any) -> MarkerGroup:
    """Ten minutes apart, on one clock; the second one has no marker. `last`: changes to the last marker."""
    decisions, markers = [], []
    for number in range(3):
        at = NOON + number * 600_000
        decisions.append(
            CoordinatorDecision(
                transactional_id="id-0",
                transaction_number=number,
                coordinator_partition=3,
                outcome="COMMIT",
                first_epoch=4,
                decided_epoch=4,
                coordinator_epoch=0,
                stamped_epoch=0,
                start_ms=at,
                said_ms=at + 100,
                completed_ms=at + 120,
                partitions=(TopicPartition("orders", 0),),
                first_record_offset=10 * number,
                last_record_offset=10 * number + 2,
            )
        )
        written = {"offset": 5 * number, "first_offset": 5 * number - 1, "type": "COMMIT", "epoch": 4}
        written |= {"coordinator_epoch": 0, "leader_epoch": 0, "ms": at + 110} | (last if number == 2 else {})
        markers.append(WrittenMarker(**written))
    return MarkerGroup(topic="orders", partition=0, decisions=tuple(decisions), markers=(markers[0], markers[2]))


@pytest.mark.parametrize(("last", "is_followed"), [({}, False), ({"type": "ABORT"}, True), ({"ms": None}, True)])
def test_a_marker_is_lost_also_in_front_of_those_of_other_decisions(spark, last, is_followed):
    """A later marker that is of no decision shows that a clock may have moved."""
    found = {row["transaction_number"]: each for row, each in rows_stored(spark, {0: three_transactions(**last)})}
    assert found[1]["marker_offset"] is None
    assert found[1]["is_followed"] is is_followed
