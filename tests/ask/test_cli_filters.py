"""The filters of `list`, as a broker applies them."""

from __future__ import annotations

import csv
import io

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from txnlib.ask.kafka_transactions import matches_whole, runs_longer
from txnlib.errors import UsageError


@pytest.mark.parametrize(
    ("start", "longer_than", "passes"),
    [
        pytest.param(NOW - 1_000, None, True, id="no filter"),
        pytest.param(NOW - 1_000, -1, True, id="below 0: no filter"),
        pytest.param(NOW - 1_000, 999, True, id="longer"),
        pytest.param(NOW - 1_000, 1_000, False, id="exactly as long is not longer"),
        pytest.param(NOW, 0, False, id="just begun"),
        pytest.param(NOW + 5, 0, False, id="begun by a clock that is ahead"),
        pytest.param(None, 10**11, True, id="Empty has start -1, which is longer ago than anything"),
    ],
)
def test_a_filter_of_duration_is_the_brokers(start, longer_than, passes):
    assert runs_longer(start, NOW, longer_than) is passes


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        pytest.param("pay", {"pay"}, id="the whole id, not a part of it"),
        pytest.param("pay.*", {"pay", "pay-1"}, id="a dot is no line feed"),
        pytest.param("pay|batch", {"pay", "batch"}, id="both sides of a choice are whole"),
        pytest.param("(?s)pay.*", {"pay", "pay-1", "pay\nx"}, id="unless asked to be"),
        pytest.param("(?i)PAY", {"pay"}, id="without case"),
        pytest.param("", {"pay", "pay-1", "pay\nx", "batch", "x٣"}, id="empty: all"),
        pytest.param(r"x\d", set(), id="digits are 0 to 9; in Python's re also those of other scripts"),
    ],
)
def test_a_pattern_is_re2_and_matches_whole_ids(pattern, matched):
    names = ["pay", "pay-1", "pay\nx", "batch", "x٣"]
    assert {name for name, is_match in zip(names, matches_whole(pattern, names), strict=True) if is_match} == matched


@pytest.mark.parametrize("pattern", ["(?=x)", r"(a)\1", "(", "a)|(b", "a*+"])
def test_what_brokers_refuse_is_refused(pattern):
    with pytest.raises(UsageError, match="transactional_id_pattern="):
        matches_whole(pattern, ["a"])


@pytest.fixture
def tables(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "coverage")
    write(tmp_path, "coordinator_states")
    states = {
        "old": ("Ongoing", NOW - 60_000),
        "young": ("Ongoing", NOW - 10),
        "ended": ("CompleteCommit", NOW - 60_000),
    }
    rows = [
        {"transactional_id": name, "state": state, "transaction_start": at(start)}
        for name, (state, start) in states.items()
    ]
    idle = {"transactional_id": "idle", "state": "Empty", "producer_id": 1, "coordinator_partition": 0}
    write(tmp_path, "transactional_ids", *[{"producer_id": 1, "coordinator_partition": 0, **row} for row in rows], idle)
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), {"old", "young", "ended", "idle"}),
        (("--duration-filter", -1), {"old", "young", "ended", "idle"}),
        (("--duration-filter", 1_000), {"old", "ended", "idle"}),
        (("--transactional-id-pattern", ".*d.*"), {"old", "ended", "idle"}),
        (("--transactional-id-pattern", "old|young", "--duration-filter", 1_000), {"old"}),
    ],
)
def test_filters_hold_together_and_in_every_form(tables, argv, expected):
    code, out, _ = txn_audit(tables, "list", *argv, "--format", "csv")
    assert code == 0
    assert {row["transactional_id"] for row in csv.DictReader(io.StringIO(out))} == expected
    code, out, _ = txn_audit(tables, "list", *argv, "--format", "kafka")
    assert {row.split("\t")[0].strip() for row in out.splitlines()[1:]} == expected


def test_ids_without_a_transaction_are_not_passed_in_silence(tables):
    assert "1 of these have no known start" in txn_audit(tables, "list", "--duration-filter", 1_000)[2]
    assert txn_audit(tables, "list")[2] == ""


def test_a_bad_pattern_is_bad_usage(tables):
    code, out, err = txn_audit(tables, "list", "--transactional-id-pattern", "(")
    assert (code, out) == (2, "")
    assert "--transactional-id-pattern (:" in err
