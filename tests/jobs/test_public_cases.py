"""Faults that others reported in public: what an audit says of them (tests/captures/README.md)."""

import tarfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited

Rows = Callable[[str], dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def public(tmp_path_factory, repository) -> Callable[[str], AuditTables]:
    folder = tmp_path_factory.mktemp("public")
    with tarfile.open(repository / "tests" / "captures" / "public-cases.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(folder)
    return lambda case: audited(folder / case, "--as-of", "2026-11-22T10:00:00Z")


@pytest.fixture(scope="module")
def rows_of(public) -> Rows:
    """A case -> its open transactions, by their topic."""
    return lambda case: {row["topic"]: row for row in public(case).rows("open_transactions")}


def causes(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["likelihood"], each["cause"]) for each in row["causes"]]


@pytest.mark.parametrize("topic", ["stock", "stocksolo", "stocknohole"])
def test_a_marker_that_a_cleaner_removed_before_a_replica_had_it(rows_of, topic):
    row = rows_of("p12-compaction-race")[topic]
    assert (row["verdict"], row["safe_to_abort"]) == ("HANGING", False)
    assert "copy another replica" not in row["do_not_abort_because"]
    likelihood, first = causes(row)[0]
    assert likelihood == "LIKELY"
    assert ("KAFKA-13727" in first) == (topic != "stocknohole")


P15 = {
    "aheadtwonomarker": "data two epochs ahead of a gap-free log",
    "aheadtwo": "the same with a COMMIT of that epoch",
    "aheadone": "one epoch ahead, with a COMMIT",
    "aheadmany": "many epochs ahead, with a COMMIT",
    "samenodecision": "a COMMIT of the epoch of the id that no decision explains",
}


@pytest.mark.parametrize("topic", P15)
def test_an_epoch_that_its_coordinator_never_assigned_is_never_safe(rows_of, topic):
    row = rows_of("p15-epoch-never-assigned")[topic]
    assert row["verdict"] in ("HANGING", "UNKNOWN")
    assert not row["safe_to_abort"]


def test_an_epoch_that_its_coordinator_never_assigned_is_one_that_it_lost_or_made_up(rows_of):
    found = causes(rows_of("p15-epoch-never-assigned")["aheadtwonomarker"])
    assert "lost its records" in found[0][1]
    assert any("never assigned" in cause for _, cause in found[1:])
    assert not any(likelihood == "LIKELY" and "without adding the partition" in cause for likelihood, cause in found)


def test_a_marker_that_the_cleaner_removed_is_no_partition_that_was_not_added(rows_of):
    """The coordinator's log lists the partition, and decided ABORT."""
    row = rows_of("q05-cause-against-the-coordinators-log")["price-cache"]
    assert row["verdict"] == "HANGING"
    ((likelihood, cause),) = causes(row)
    assert (likelihood, "KAFKA-13727" in cause) == ("LIKELY", True)


@pytest.mark.parametrize(
    ("topic", "verdict", "words"),
    [("ledger", "LATE", "the coordinator's partition has fewer"), ("bill", "STUCK", "the partition has fewer")],
)
def test_below_min_insync_replicas_no_coordinator_ends_anything(rows_of, public, topic, verdict, words):
    """Neither a forced end nor another coordinator helps, and the only replica in sync must not be restarted."""
    row = rows_of("q03-below-min-isr")[topic]
    assert row["verdict"] == verdict
    likelihood, cause = causes(row)[0]
    assert (likelihood, words in cause) == ("PROVEN", True)
    assert "bring brokers 2 and 3 back" in row["do_not_abort_because"]
    (step,) = [step for step in public("q03-below-min-isr").rows("abort_plan") if step["topic"] == topic]
    assert (step["action"], step["command"]) == ("RESTORE_REPLICAS", None)
    assert step["notes"] == [row["do_not_abort_because"]]
