"""Partitions to which batches were only appended since the earlier run."""

import pytest

from tests.support.frames import frame
from txnlib.incremental.earlier_run import RESUMED
from txnlib.incremental.resumed_spans import appended_partitions
from txnlib.spark.schemas import TABLES

COPY = {"topic": "orders", "partition": 0, "source": "raw:1"}


def segment(base, end, last_position=500, **more):
    landmarks = [{"position": position, "size": 100, "base_offset": 0, "crc": 1} for position in (0, last_position)]
    known = {"kind": "raw", "path": f"{base}.log", "segment_base_offset": base, "first_offset": base, "end_offset": end}
    return COPY | known | {"landmarks": landmarks} | more


def read_from(base, position=600):
    return (*COPY.values(), base, f"{base}.log", position, 1, 0)


def judged(**more):
    return COPY | {"is_judged": True, "first_offset": 0, "log_start_offset": 0} | more


def snapshot(offset, **more):
    return COPY | {"path": "night/x.snapshot", "snapshot_offset": offset, "producer_id": 7, "producer_epoch": 0} | more


#: Two segments, the second of which grew and was followed by a third: as it should be.
APPENDED_TO = {
    "segments": [segment(0, 100), segment(100, 250), segment(250, 300)],
    "coverage": [judged()],
    "snapshots": [],
    "earlier_segments": [segment(0, 100), segment(100, 200)],
    "earlier_coverage": [judged()],
    "earlier_snapshots": [],
    "resumed": [read_from(0), read_from(100)],
}
LATE = judged(first_offset=20, log_start_offset=20)
LATER_START = {"coverage": [LATE], "earlier_coverage": [LATE]}

CASES = {
    "grew": ({}, 200),
    "did not grow": ({"segments": [segment(0, 100), segment(100, 200)]}, 200),
    "lost its first segment": ({"segments": APPENDED_TO["segments"][1:], "resumed": [read_from(100)]}, None),
    "a segment was read whole again": ({"resumed": [read_from(0)]}, None),
    "a last batch is read again": ({"resumed": [read_from(0), read_from(100, 500)]}, None),
    "an old segment grew": ({"segments": [segment(0, 110), segment(100, 250)]}, None),
    "an older segment came to be": ({"segments": [*APPENDED_TO["segments"], segment(50, 60)]}, None),
    "a new segment is empty": ({"segments": [*APPENDED_TO["segments"], segment(300, None, first_offset=None)]}, 200),
    "a segment was given twice": ({"segments": [*APPENDED_TO["segments"], segment(250, 300)]}, None),
    "a segment had been given twice": ({"earlier_segments": [*APPENDED_TO["earlier_segments"], segment(0, 100)]}, None),
    "the newest segment did not end last": (
        {"earlier_segments": [segment(0, 300), segment(100, 200)], "segments": [segment(0, 300), segment(100, 250)]},
        None,
    ),
    "another copy is judged": ({"coverage": [judged(source="raw:2")]}, None),
    "another copy was judged": ({"earlier_coverage": [judged(source="raw:2")]}, None),
    "the log start moved": ({"coverage": [judged(log_start_offset=20, first_offset=20)]}, None),
    "begins in the middle, as before": (LATER_START, 200),
    "begins at a snapshot, as before": (
        LATER_START | {"snapshots": [snapshot(20)], "earlier_snapshots": [snapshot(20)]},
        200,
    ),
    "copied to another folder": (
        LATER_START | {"snapshots": [snapshot(20)], "earlier_snapshots": [snapshot(20, path="night-1/x.snapshot")]},
        200,
    ),
    "begins at another snapshot": (
        LATER_START | {"snapshots": [snapshot(20)], "earlier_snapshots": [snapshot(10)]},
        None,
    ),
    "a snapshot came to be": (LATER_START | {"snapshots": [snapshot(20)]}, None),
    "the snapshot says something else": (
        LATER_START | {"snapshots": [snapshot(20)], "earlier_snapshots": [snapshot(20, producer_epoch=1)]},
        None,
    ),
    "the snapshot is after what was read": (
        LATER_START | {"snapshots": [snapshot(230)], "earlier_snapshots": [snapshot(230)]},
        None,
    ),
    "was text": (
        {"earlier_segments": [segment(0, 100, kind="text"), segment(100, 200)], "resumed": [read_from(100)]},
        None,
    ),
}


@pytest.fixture(scope="module")
def found(spark):
    """By case, what is found of its partition: each has one of its own, so that all cases are one question."""

    def of_cases(schema, name):
        cases = ((number, (APPENDED_TO | given)[name]) for number, (given, _) in enumerate(CASES.values()))
        return frame(spark, schema, *[row | {"partition": number} for number, found in cases for row in found])

    schemas = {
        "segments": TABLES["segments"],
        "coverage": TABLES["coverage"],
        "snapshots": TABLES["producer_snapshots"],
    }
    tonight, before = ([of_cases(schemas[name], f"{prefix}{name}") for name in schemas] for prefix in ("", "earlier_"))
    resumed = [
        (topic, number, *rest)
        for number, (given, _) in enumerate(CASES.values())
        for topic, _, *rest in (APPENDED_TO | given)["resumed"]
    ]
    rows = appended_partitions(*tonight, *before, spark.createDataFrame(resumed, RESUMED))
    return {row["partition"]: (row["topic"], row["source"], row["appended_from"]) for row in rows.collect()}


@pytest.mark.parametrize("case", CASES)
def test_batches_were_only_appended_if_all_earlier_ones_are_unchanged(found, case):
    _, appended_from = CASES[case]
    expected = None if appended_from is None else (COPY["topic"], COPY["source"], appended_from)
    assert found.get(list(CASES).index(case)) == expected
