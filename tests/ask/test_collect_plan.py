"""The needs of a capture: each gap once, with its use; and the plan from tables."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.delta_tables import txn_audit, write, write_run
from txnlib.ask.collect_plan import COLUMNS, NEEDS, commands, to_collect
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC as STATE


def copy(topic: str, partition: int, status: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    known = {"topic": topic, "partition": partition, "status": status, "source": "raw:1", "broker": "1", "leader": "1"}
    judged = {
        "is_leader": True,
        "is_judged": True,
        "is_decoded": True,
        "damaged_offset": None,
        "high_watermark": 5,
        "detail": None,
    }
    return {**known, **judged, "tail": "CLEAN", "log_start_offset": 0, "read_from_offset": 0, **more}


def missing(topic: str, partition: int, leader: str | None = None) -> dict[str, Any]:
    nothing = {
        "source": None,
        "broker": None,
        "is_leader": None,
        "is_judged": False,
        "is_decoded": None,
        "high_watermark": None,
    }
    return copy(topic, partition, "MISSING", **nothing, leader=leader)


def waits(reason: str, coordinator: int | None = None, topic: str = "orders", partition: int = 0) -> dict[str, Any]:
    """An undecided transaction; each is of another producer."""
    return {
        "topic": topic,
        "partition": partition,
        "producer_id": next(PRODUCERS),
        "transactional_id": None,
        "coordinator_partition": coordinator,
        "verdict": "UNKNOWN",
        "reason": reason,
    }


PRODUCERS = count()


WHOLE = [copy(STATE, 0), copy("orders", 0)]


def needs(
    coverage: list[dict[str, Any]], undecided: Any = (), listed: Any = None, opened: Any = ()
) -> list[tuple[Any, ...]]:
    found = to_collect(coverage, undecided, listed or {}, set(opened))
    return [(row["need"], row["topic"], row["partition"], row["broker"], row["undecided"]) for row in found]


def test_of_a_whole_capture_nothing_is_to_be_collected():
    assert needs(WHOLE, opened=[("orders", 0)]) == []


FOLLOWERS = {"is_leader": False, "leader": "2"}
HERE = {("pay", 1)}
#: A gap in a capture that is whole else: a row of coverage, and what is open.
GAPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a coordinator, from its leader": (missing(STATE, 7, "3"), {}),
    "a coordinator whose leader is not noted": (missing(STATE, 7), {}),
    "a damaged coordinator": (copy(STATE, 7, damaged_offset=9), {}),
    "a coordinator that was perhaps cut": (copy(STATE, 7, "PARTIAL", tail="EMPTY_OR_CUT"), {}),
    "a coordinator without its begin": (copy(STATE, 7, "PARTIAL", log_start_offset=9), {}),
    "a coordinator with a corrupt end": (copy(STATE, 7, "DAMAGED", tail="CORRUPT"), {}),
    "a console's text of a coordinator": (copy(STATE, 7, "PARTIAL", source="console:x"), {}),
    "a coordinator that was copied too early": (copy(STATE, 7), {"undecided": [waits("CAPTURE_SKEW", 7)]}),
    "a coordinator that may not be opened": (
        copy(STATE, 7, "PARTIAL", tail="UNOPENED"),
        {"undecided": [waits("COORDINATOR_LOG_DAMAGED", 7)]},
    ),
    "a partition that may not be opened": (copy("pay", 1, "PARTIAL", tail="UNOPENED"), {}),
    "a partition": (missing("pay", 1), {}),
    "a partition that unfinished transactions list": (missing("pay", 1), {"listed": {("pay", 1): 1}}),
    "a damaged copy": (copy("pay", 1, "DAMAGED"), {}),
    "a copy with a hole that counts": (
        copy("pay", 1),
        {"undecided": [waits("PARTITION_LOG_INCOMPLETE", 0, "pay", 1)]},
    ),
    "a follower's copy of what is open": (copy("pay", 1, **FOLLOWERS), {"opened": HERE}),
    "a follower's copy of what has no leader": (copy("pay", 1, **FOLLOWERS | {"leader": "-1"}), {"opened": HERE}),
    "a broker's checkpoints": (copy("pay", 1, broker="9", high_watermark=None), {}),
    "groups": (missing("__consumer_offsets", 1), {}),
}


def test_each_gap_has_its_need_as_it_was_read_last(assert_as_read):
    told = ""
    for name, (row, more) in GAPS.items():
        known = {"undecided": [], "listed": {}, "opened": set()} | more
        (need,) = to_collect([*WHOLE, row], known["undecided"], known["listed"], known["opened"])
        told += f"== {name}\n{'  '.join(f'{need[column]}' for column in COLUMNS)}\n"
    assert {*re.findall(r"^1  (\w+)", told, re.MULTILINE)} == {*NEEDS}, "every need is reached"
    assert_as_read("gaps", told)


def test_a_followers_copy_of_what_is_not_open_is_good_enough():
    assert needs([*WHOLE, copy("pay", 1, is_leader=False, leader="2")]) == []


def test_one_whole_copy_of_several_is_enough():
    follower = copy("orders", 0, "DAMAGED", broker="2", source="raw:2", is_judged=False)
    assert needs([*WHOLE, follower, copy(STATE, 0, "DAMAGED", damaged_offset=3, is_judged=False)]) == []


def test_a_transaction_counts_once_and_nobodys_may_belong_to_every_coordinator():
    coverage = [copy(STATE, 0), copy(STATE, 1), copy("orders", 0), copy("orders", 1)]
    skewed = waits("CAPTURE_SKEW")
    assert needs(coverage, [skewed, {**skewed, "partition": 1}]) == [
        ("COORDINATOR_AGAIN", STATE, 0, "1", 1),
        ("COORDINATOR_AGAIN", STATE, 1, "1", 1),
    ]


def test_what_decides_most_comes_first():
    undecided = [waits("COORDINATOR_PARTITION_NOT_CAPTURED"), waits("PARTITION_LOG_INCOMPLETE", 0, "pay", 1)]
    undecided += [waits("COORDINATOR_PARTITION_NOT_CAPTURED", 8)]
    coverage = [
        *WHOLE,
        missing("__consumer_offsets", 0),
        missing("b", 0),
        copy("pay", 1),
        missing(STATE, 7),
        missing(STATE, 8),
    ]
    assert [(need, partition, waiting) for need, _, partition, _, waiting in needs(coverage, undecided)] == [
        ("COORDINATOR_MISSING", 8, 2),
        ("COORDINATOR_MISSING", 7, 1),
        ("COPY_NOT_WHOLE", 1, 1),
        ("PARTITION_NAMED", 0, 0),
        ("GROUPS", 0, 0),
    ]


def test_without_any_coordinator_there_is_one_row():
    undecided = [waits("COORDINATOR_PARTITION_NOT_CAPTURED"), waits("COORDINATOR_PARTITION_NOT_CAPTURED", 8)]
    coverage = [copy("orders", 0), *(missing(STATE, number, str(number % 3)) for number in range(50))]
    found = to_collect(coverage, undecided, {}, set())
    assert [(row["need"], row["topic"], row["partition"], row["broker"], row["undecided"]) for row in found] == [
        ("COORDINATOR_MISSING", STATE, None, None, 2)
    ]
    assert found[0]["why"].startswith("no coordinator partition was captured: ")
    assert commands(found) == [
        "# on the leader of each, which kafka-topics.sh --describe names, whose coordinators are copied along",
        "scripts/capture.sh --output CAPTURE --log-dirs DIRS --step coordinators",
    ]


def test_each_broker_has_one_command_and_what_needs_no_copy_none():
    coverage = [*WHOLE, missing(STATE, 7, "2"), missing("a", 0, "3"), missing("b", 1, "3"), missing(STATE, 8, "3")]
    no_copies = [
        missing("__consumer_offsets", 0, "9"),
        copy("c", 2, "PARTIAL", tail="UNOPENED", broker="9", leader="9"),
    ]
    lines = commands(to_collect([*coverage, *no_copies], [], {}, set()))
    assert lines == [
        "# on broker 2, whose coordinators are copied along",
        "scripts/capture.sh --output CAPTURE --log-dirs DIRS --step coordinators",
        "# on broker 3, whose coordinators are copied along",
        "scripts/capture.sh --output CAPTURE --log-dirs DIRS --partitions a-0,b-1",
    ]


def test_many_partitions_are_named_by_their_topics_and_nothing_escapes_the_shell():
    many = [missing("orders.eu", n, "3") for n in range(60)]
    assert commands(to_collect(many, [], {}, set()))[1].endswith(r"--topics 'orders\.eu'")
    evil = commands(to_collect([missing("x;\nrm -rf /", 0, "3")], [], {}, set()))[1]
    assert len(evil.splitlines()) == 1
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {evil}"], capture_output=True, check=True).stdout
    assert told.split(b"\0")[-2] == b"x;\nrm -rf /-0"


# ---- From tables

CAPTURED = {"captured_at": datetime(2026, 11, 21, tzinfo=UTC)}


def tables(root: Path, *coverage: dict[str, Any]) -> Path:
    write_run(root)
    write(root, "coverage", *coverage)
    unknown = {"topic": "orders", "partition": 0, "verdict": "UNKNOWN", "reason": "COORDINATOR_PARTITION_NOT_CAPTURED"}
    unknown |= {"producer_id": 7, "coordinator_partition": 1}
    write(root, "open_transactions", unknown)
    ended = {"transactional_id": "b", "state": "CompleteCommit", "partitions": [{"topic": "pay", "partition": 1}]}
    write(root, "transactional_ids", {**ended, "transactional_id": "a", "state": "Ongoing"}, ended)
    return root


def test_people_see_what_helps_most_and_programs_all(tmp_path):
    root = tables(tmp_path, copy(STATE, 0, **CAPTURED), *[missing("pay", number) for number in range(90)])
    text = txn_audit(root, "collect-plan")[1]
    assert "and 50 more (--format csv has all)" in text
    assert text.count("listed by 1 unfinished transaction") == 1
    assert len(text.splitlines()) < 50
    assert len(list(csv.DictReader(io.StringIO(txn_audit(root, "collect-plan", "--format", "csv")[1])))) == 90


def test_assumed_instants_are_said(tmp_path):
    root = tables(tmp_path, copy("orders", 0))
    assert "audit again with --captured-at TIME" in txn_audit(root, "collect-plan")[1]


def test_where_no_coordinator_was_read_nothing_is_not_missing(tmp_path):
    root = tables(tmp_path, copy("orders", 0, **CAPTURED))
    (row,) = json.loads(txn_audit(root, "collect-plan", "--format", "json")[1])
    assert (row["need"], row["topic"], row["partition"], row["undecided"]) == ("COORDINATOR_MISSING", STATE, None, 1)
