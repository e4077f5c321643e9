"""Captures with known damage: nothing false, and all that damage cannot change.

Copies of one capture, each with one documented damage (tests/captures: damaged-3.8/cases).
"""

import json

import pytest

from tests.support import live_output
from tests.support.memory_audits import audited

CASES = [
    "attributes-bit", "coordinator-partition-missing", "data-cut", "garbage-files", "length-field", "segment-missing",
    "torn-text",
]  # fmt: skip


#: An audit takes half a minute: CI has time for one of raw files and one of text.
IN_CI = {"attributes-bit"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=[] if case in IN_CI else pytest.mark.slow) for case in CASES])
def test_damage_makes_nothing_hang_and_hides_only_what_it_touched(spark, captures, case):
    capture = captures / "damaged-3.8"
    folder = capture / "cases" / case
    damage = json.loads((folder / "damage.json").read_text())
    tables = audited(
        spark, folder / ("brokers" if (folder / "brokers").exists() else "dumps"), "--as-of", str(live_output.as_of(capture))
    )
    hanging = {key(row) for row in tables.rows("open_transactions") if row["verdict"] == "HANGING"}
    assert hanging <= {key(row) for row in damage["hanging_by_truth"]}
    assert hanging >= {key(row) for row in damage.get("must_still_be_hanging", [])}
    # Every byte that was lost is named, and no other.
    named = {(row["path"].rpartition("/")[2], row["position"], row["length"]) for row in tables.rows("quarantine")}
    for change in damage["changes"]:
        if change["kind"] == "bit flipped":
            (lost,) = change["lost"]
            assert named == {(change["file"].rpartition("/")[2], lost["position"], lost["size"])}


def key(row):
    return row["topic"], row["partition"], row["producer_id"]


@pytest.mark.slow
def test_copies_in_motion_make_nothing_hang_and_nothing_odd(spark, captures):
    tables = audited(spark, captures / "in-motion-4.0" / "brokers")
    assert [row for row in tables.rows("open_transactions") if row["verdict"] == "HANGING"] == []
    assert [row for row in tables.rows("findings") if row["severity"] != "INFO"] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["brokers", "dumps/4.0.1"])
def test_a_healthy_cluster_has_no_verdict_but_open_and_no_finding_above_info(spark, captures, part):
    as_of = str(live_output.as_of(captures / "healthy-4.0"))
    tables = audited(spark, captures / "healthy-4.0" / part, "--as-of", as_of)
    assert {row["verdict"] for row in tables.rows("open_transactions")} <= {"OPEN"}
    assert [row for row in tables.rows("findings") if row["severity"] != "INFO"] == []
