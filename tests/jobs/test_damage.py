"""Captures with known damage: nothing false, and all that damage cannot change."""

import json
import shutil

import pytest

from tests.support import live_output
from tests.support.audits import audited
from txnlib.core.findings.transaction_index_findings import TRANSACTION_INDEX_DISAGREES
from txnlib.core.kafka.log_dir_files import INDEX_ENTRY, AbortedTxn, read_transaction_index

#: Copies of one capture, each with one documented damage (tests/captures: damaged-3.8/cases).
CASES = [
    "attributes-bit", "coordinator-partition-missing", "data-cut", "garbage-files", "length-field", "segment-missing",
    "torn-text",
]  # fmt: skip


#: CI has time for one.
IN_CI = {"attributes-bit"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in IN_CI else pytest.mark.slow) for case in CASES]
)
def test_damage_makes_nothing_hang_and_hides_only_what_it_touched(captures, case):
    capture = captures / "damaged-3.8"
    folder = capture / "cases" / case
    damage = json.loads((folder / "damage.json").read_text())
    copies = folder / ("brokers" if (folder / "brokers").exists() else "dumps")
    tables = audited(copies, "--as-of", str(live_output.as_of(capture)))
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
def test_copies_in_motion_make_nothing_hang_and_nothing_odd(captures):
    tables = audited(captures / "in-motion-4.0" / "brokers")
    assert [row for row in tables.rows("open_transactions") if row["verdict"] == "HANGING"] == []
    assert [row for row in tables.rows("findings") if row["severity"] != "INFO"] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["brokers", "dumps/4.0.1"])
def test_a_healthy_cluster_has_no_verdict_but_open_and_no_finding_above_info(captures, part):
    as_of = str(live_output.as_of(captures / "healthy-4.0"))
    tables = audited(captures / "healthy-4.0" / part, "--as-of", as_of)
    assert {row["verdict"] for row in tables.rows("open_transactions")} <= {"OPEN"}
    assert [row for row in tables.rows("findings") if row["severity"] != "INFO"] == []


INDEX_DISAGREES = TRANSACTION_INDEX_DISAGREES.name


@pytest.fixture
def broker(captures, tmp_path):
    return shutil.copytree(captures / "nights-3.9" / "night-3" / "brokers", tmp_path / "brokers")


def found(folder):
    return [
        (row["producer_id"], row["offset"])
        for row in audited(folder).rows("findings")
        if row["name"] == INDEX_DISAGREES
    ]


def indexes(folder):
    """The entries of every index of `nightly.in`, by file."""
    paths = sorted(folder.rglob("nightly.in-*/*.txnindex"))
    return {path: entries for path in paths if (entries := read_transaction_index(path.read_bytes()))}


@pytest.mark.slow  # `tests/core/findings/test_copy_findings.py` compares logs and indexes in CI
def test_an_abort_that_an_index_lacks_is_found(broker):
    for path, entries in indexes(broker).items():
        if len(entries) > 1:
            path.write_bytes(b"".join(INDEX_ENTRY.pack(0, *entry) for entry in entries[1:]))
            lost = entries[0]
    assert (lost.producer_id, lost.last_offset) in found(broker)


@pytest.mark.slow
def test_an_abort_that_only_an_index_knows_is_found(broker):
    for path, entries in indexes(broker).items():
        first = entries[0]
        made_up = AbortedTxn(77, first.first_offset, first.first_offset, first.first_offset)
        path.write_bytes(b"".join(INDEX_ENTRY.pack(0, *entry) for entry in [made_up, *entries]))
    assert (77, made_up.last_offset) in found(broker)


@pytest.mark.slow
def test_a_corrupt_index_is_quarantined_and_compared_with_nothing(broker):
    for path in indexes(broker):
        path.write_bytes(b"\x00\x09" + path.read_bytes()[2:])
    tables = audited(broker)
    assert {row["reason"] for row in tables.rows("quarantine")} == {
        "CORRUPT_TRANSACTION_INDEX: byte 0: version 9 of an aborted transaction is not known"
    }
    assert [row for row in tables.rows("findings") if row["name"] == INDEX_DISAGREES] == []
