"""The needs of a capture: each gap once, with its use."""

from __future__ import annotations

import subprocess
from itertools import count
from typing import Any

import pytest

from txnlib.ask.collect_plan import NEEDS, collect_plan_output, commands, to_collect
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


@pytest.mark.parametrize(
    ("row", "more", "expected"),
    [
        pytest.param(
            missing(STATE, 7, "3"), {}, ("COORDINATOR_MISSING", STATE, 7, "3", 0), id="a coordinator, from its leader"
        ),
        pytest.param(missing(STATE, 7), {}, ("COORDINATOR_MISSING", STATE, 7, None, 0), id="whose leader is not noted"),
        pytest.param(
            copy(STATE, 7, damaged_offset=9), {}, ("COORDINATOR_UNCLEAR", STATE, 7, "1", 0), id="a damaged coordinator"
        ),
        pytest.param(
            copy(STATE, 7, "PARTIAL", tail="EMPTY_OR_CUT"),
            {},
            ("COORDINATOR_UNCLEAR", STATE, 7, "1", 0),
            id="perhaps cut",
        ),
        pytest.param(
            copy(STATE, 7, "PARTIAL", log_start_offset=9),
            {},
            ("COORDINATOR_UNCLEAR", STATE, 7, "1", 0),
            id="without its begin",
        ),
        pytest.param(
            copy(STATE, 7, "DAMAGED", tail="CORRUPT"),
            {},
            ("COORDINATOR_UNCLEAR", STATE, 7, "1", 0),
            id="with a corrupt end",
        ),
        pytest.param(
            copy(STATE, 7, "PARTIAL", source="console:x"),
            {},
            ("COORDINATOR_UNCLEAR", STATE, 7, "1", 0),
            id="a console's text of it",
        ),
        pytest.param(
            copy(STATE, 7),
            {"undecided": [waits("CAPTURE_SKEW", 7)]},
            ("COORDINATOR_AGAIN", STATE, 7, "1", 1),
            id="copied too early",
        ),
        pytest.param(
            copy(STATE, 7, "PARTIAL", tail="UNOPENED"),
            {"undecided": [waits("COORDINATOR_LOG_DAMAGED", 7)]},
            ("NOT_OPENED", STATE, 7, "1", 1),
            id="a coordinator that may not be opened",
        ),
        pytest.param(
            copy("pay", 1, "PARTIAL", tail="UNOPENED"),
            {},
            ("NOT_OPENED", "pay", 1, "1", 0),
            id="a partition that may not be opened",
        ),
        pytest.param(missing("pay", 1), {}, ("PARTITION_NAMED", "pay", 1, None, 0), id="a partition"),
        pytest.param(copy("pay", 1, "DAMAGED"), {}, ("COPY_NOT_WHOLE", "pay", 1, "1", 0), id="a damaged copy"),
        pytest.param(
            copy("pay", 1),
            {"undecided": [waits("PARTITION_LOG_INCOMPLETE", 0, "pay", 1)]},
            ("COPY_NOT_WHOLE", "pay", 1, "1", 1),
            id="with a hole that counts",
        ),
        pytest.param(
            copy("pay", 1, is_leader=False, leader="2"),
            {"opened": [("pay", 1)]},
            ("NOT_THE_LEADERS", "pay", 1, "2", 0),
            id="a follower's copy of what is open",
        ),
        pytest.param(
            copy("pay", 1, is_leader=False, leader="-1"),
            {"opened": [("pay", 1)]},
            ("NOT_THE_LEADERS", "pay", 1, None, 0),
            id="a copy of what is open and has no leader",
        ),
        pytest.param(
            copy("pay", 1, broker="9", high_watermark=None),
            {},
            ("CHECKPOINTS", None, None, "9", 0),
            id="a broker's checkpoints",
        ),
        pytest.param(missing("__consumer_offsets", 1), {}, ("GROUPS", "__consumer_offsets", 1, None, 0), id="groups"),
    ],
)
def test_each_gap_has_its_need(row, more, expected):
    assert needs([*WHOLE, row], **more) == [expected]


def test_every_need_is_reached():
    """The table of needs and the cases above name the same."""
    cases = test_each_gap_has_its_need.pytestmark[0].args[1]
    assert {case.values[2][0] for case in cases} == set(NEEDS)


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


@pytest.mark.parametrize("rows", [[], to_collect([missing("pay", 1)], [], {}, set())], ids=["nothing", "something"])
@pytest.mark.parametrize("is_assumed", [False, True])
def test_assumed_instants_are_told_before_what_to_copy(rows, is_assumed):
    text = collect_plan_output(rows, is_instant_assumed=is_assumed).text("table")
    assert text.startswith("no capture.json notes when the copies were taken") is is_assumed
    assert ("--captured-at TIME" in text) is is_assumed


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
