"""Dossiers against loops over rows, and their two runners."""

from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from tests.support.dossier_samples import (
    CLAIM,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    FOO,
    LOST,
    MARKER,
    MINUTE,
    NOON,
    ORPHAN,
    SPAN,
)
from tests.support.frames import frame
from txnlib.core.cluster_metadata import Election
from txnlib.core.instants import clock_ms
from txnlib.core.sql_text import struct
from txnlib.core.tables.judged_transactions import judge_dossier
from txnlib.core.verdicts.coordinators import PartitionFacts
from txnlib.core.verdicts.dossier import Dossier, MarkerElsewhere, OpenSpan, SiblingMarkers
from txnlib.core.verdicts.earlier_audits import EarlierAudit
from txnlib.readers.typed_rows import plain, typed
from txnlib.spark import joins
from txnlib.spark.core_rows import struct_of
from txnlib.spark.frames import arrow_of, arrow_schema, frame_of, local_rows
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.batch_evidence import stamps_around
from txnlib.spark.tables.open_transactions import judged_rows

SOURCE = "raw:1"


# ---- Stamps and bytes around each span


def batches_of(random: Random, partition: int) -> list[dict]:
    """A log with gaps and two leader epochs, of which some batches are markers, and some stamped by the broker."""
    found, offset, turn = [], random.randrange(3), random.randrange(60)
    for number in range(random.randrange(60)):
        is_marker, is_stamped = random.random() < 0.2, random.random() < 0.2
        row = {
            "base_offset": offset, "last_offset": offset, "size": random.randrange(1, 100), "is_control": is_marker,
            "max_timestamp_ms": random.randrange(50) - 5, "partition_leader_epoch": int(number > turn),
        }  # fmt: skip
        row |= {"timestamp_type": "LOG_APPEND_TIME" if is_stamped else "CREATE_TIME"}
        row |= {"producer_id": None if not is_marker and random.random() < 0.3 else 7}
        found.append({"topic": "t", "partition": partition, "source": SOURCE, **row})
        offset += random.choice((1, 1, 2, 3, 20))
    return found


def expected_around(rows: list[dict], start: int, last: int, log_start: int | None, mark: int | None) -> tuple:
    def stamps(epoch: int, is_wanted) -> list[int]:
        marked = [
            row
            for row in rows
            if (row["is_control"] and row["producer_id"]) or row["timestamp_type"] == "LOG_APPEND_TIME"
        ]
        of_epoch = [row for row in marked if row["partition_leader_epoch"] == epoch and is_wanted(row["base_offset"])]
        return [ms for row in of_epoch if (ms := clock_ms(row["max_timestamp_ms"])) is not None]

    edges = (
        (max, lambda at: at < start),
        (max, lambda at: at <= last),
        (min, lambda at: at >= start),
        (min, lambda at: at > last),
    )
    epochs = {row["partition_leader_epoch"] for row in rows}
    found = Counter(tuple(of(stamps(epoch, is_wanted), default=None) for of, is_wanted in edges) for epoch in epochs)
    return found, sum(
        row["size"]
        for row in rows
        if row["base_offset"] >= start
        and row["last_offset"] >= (log_start or 0)
        and (mark is None or row["base_offset"] < mark)
    )


def test_stamps_around_spans_of_random_logs(spark, monkeypatch):
    monkeypatch.setattr(joins, "BUCKET_OFFSETS", 16)
    monkeypatch.setattr(joins, "BLOCK_OFFSETS", 4)
    random = Random(11)
    logs = {partition: batches_of(random, partition) for partition in range(40)}
    spans = [
        (partition, start, start + random.randrange(30))
        for partition, rows in logs.items()
        if rows
        for start in {random.randrange(400) for _ in range(2)}
        | {row["base_offset"] for row in rows if random.random() < 0.2}
    ]
    marks = {partition: random.choice((None, 0, random.randrange(400))) for partition in logs}
    starts = {partition: random.choice((None, 0, random.randrange(400))) for partition in logs}
    expected = {
        (place, start): expected_around(logs[place], start, last, starts[place], marks[place])
        for place, start, last in spans
    }
    assert sum(stamps.total() > 1 for stamps, _ in expected.values()) > 50
    # A second copy of each partition, which is not the judged one, counts nothing.
    rows = [row | other for found in logs.values() for row in found for other in ({}, {"source": "raw:2"})]
    located = local_rows(
        spark,
        [
            ("t", place, SOURCE, starts[place], marks[place], number, start, last)
            for number, (place, start, last) in enumerate(spans)
        ],
        "topic string, partition int, source string, log_start_offset long, high_watermark long, producer_id long, "
        "start_offset long, last_offset long",
    )
    found = {}
    for row in stamps_around(located, frame(spark, TABLES["record_batches"], *rows)).collect():
        names = ("before_ms", "before_last_ms", "behind_ms", "behind_last_ms")
        stamps = Counter(tuple(each[name] for name in names) for each in row["stamps"])
        found[row["partition"], row["start_offset"]] = stamps, row["bytes_from_here"]
    assert found == expected


# ---- Dataclasses as rows, and back


FULL_SPAN = replace(
    SPAN, siblings=(SiblingMarkers(topic="bar", partition=1, is_committed=True),),
    markers_elsewhere=(MarkerElsewhere(is_truncated=True, broker="2", offset=7, type="COMMIT"),),
    earlier=(EarlierAudit(run_id="a", as_of_ms=NOON),),
)  # fmt: skip
FULL = replace(
    DOSSIER, open=(FULL_SPAN,), decisions=(DECISION, replace(LOST, partitions=None)), answered_owners=("x", "y")
)


def gathered_of(spark, dossiers: list[Dossier]):
    kind = struct_of(Dossier)
    return frame_of(spark, pa.Table.from_pylist([plain(each) for each in dossiers], schema=arrow_schema(kind)), kind)


def test_a_dossier_survives_the_way_through_a_frame(spark):
    given = [FULL, replace(ORPHAN, open=()), Dossier(producer_id=1, open=())]
    rows = arrow_of(gathered_of(spark, given)).to_pylist()
    assert [typed(Dossier, row) for row in rows] == given


def test_null_is_the_default_of_a_field_that_cannot_be_none(spark):
    nothing = struct(Election, dict.fromkeys(plain(Election()), "NULL"))
    (row,) = spark.range(1).selectExpr(f"{nothing} AS row").toArrow().to_pylist()
    assert typed(Election, row["row"]) == Election()


def test_a_field_that_no_class_has_is_refused():
    with pytest.raises(ValueError, match="no field sequence"):
        struct(Election, {"sequence": "x"})


# ---- Judged


#: Of each partition: offset of a gap, and alarms.
OF_PARTITIONS = [(None, ()), (90, ("X",))]


def random_dossier(random: Random, producer_id: int) -> Dossier:
    def span(partition: int) -> OpenSpan:
        start, markers = random.randrange(30, 80), (MARKER,) if random.random() < 0.5 else ()
        last_ms = random.choice([NOON, NOON + 59 * MINUTE, -1, None])
        return replace(SPAN, partition=partition, start_offset=start, markers=markers, last_timestamp_ms=last_ms)

    spans = tuple(span(partition) for partition in range(1, random.randrange(2, 4)))
    partitions = random.choice([(), (FOO,), (replace(FOO, partition=1),)])
    state = random.choice(["Ongoing", "PrepareCommit", "CompleteAbort", "Empty", None])
    transactional_id = random.choice([CLAIM.transactional_id, ""])
    claim = replace(
        CLAIM,
        transactional_id=transactional_id,
        state=state,
        owner=random.choice(["CURRENT", "ROTATED", "EXPIRED", "NEXT"]),
        partitions=partitions,
    )
    claims = (claim,) if random.random() < 0.7 else ()
    return Dossier(
        producer_id=producer_id, open=spans, claims=claims, decisions=(DECISION,) if random.random() < 0.5 else ()
    )


def test_each_dossier_is_judged_by_the_core(spark):
    random = Random(5)
    given = [random_dossier(random, producer_id) for producer_id in range(60)]
    gathered = gathered_of(spark, given)
    of_partitions = [
        PartitionFacts(copies=(replace(COPY, gap_offset=gap),), alarms=alarms) for gap, alarms in OF_PARTITIONS
    ]
    facts = replace(FACTS, partitions={("foo", number): of for number, of in enumerate(of_partitions, 1)})
    found = arrow_of(judged_rows(gathered, facts)).to_pylist()
    judged = [row for dossier in given for row in judge_dossier(dossier, facts)]
    assert {(row.producer_id, row.partition, row.verdict, row.reason, row.safe_to_abort) for row in judged} == {
        (row["producer_id"], row["partition"], row["verdict"], row["reason"], row["safe_to_abort"]) for row in found
    }
    assert len({row["verdict"] for row in found}) >= 3
    assert {row["application"] for row in found} == {None, "bar", ""}
    written = [(row["last_timestamp"], row["last_timestamp_ms"]) for row in found]
    assert [ms if at is None else round(at.timestamp() * 1_000) for at, ms in written] == [ms for _, ms in written]
    assert any(at is not None for at, _ in written)
