"""Audits of a real cluster whose metadata log replaces all notes.

`md-4.1`: three brokers, two unclean elections, a topic that was deleted and one that was created again, a partition
without a leader, dynamic settings; the third broker was killed and its disk copied as it lay. truth.json says who led
what.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.jobs.test_metadata_loss import audit_of
from tests.support import live_output
from tests.support.audits import AuditTables
from txnlib.pipeline.tables import _version_or_oldest

CAPTURE = "md-4.1"


@pytest.fixture(scope="module")
def capture(captures: Path) -> Path:
    return captures / CAPTURE


@pytest.fixture(scope="module")
def truth(capture):
    return live_output.truth(capture)


@pytest.fixture(scope="module")
def whole(capture) -> AuditTables:
    return audit_of(capture, capture / "brokers")


def without(capture: Path, tmp_path: Path, *brokers: str) -> Path:
    """The capture without the directories of some brokers."""
    folder = tmp_path / "-".join(("without", *brokers))  # a number alone would name a broker
    shutil.copytree(
        capture / "brokers", folder, ignore=lambda path, names: brokers if Path(path).name == "brokers" else ()
    )
    return folder


def test_the_assignments_are_those_of_the_live_cluster(whole, truth):
    found = {
        f"{row['topic']}-{row['partition']}": (-1 if row["leader"] is None else row["leader"], sorted(row["replicas"]))
        for row in whole.rows("partition_assignments")
        if row["is_current"]
    }
    assert found == {name: (noted["leader"], sorted(noted["replicas"])) for name, noted in truth["partitions"].items()}


def test_what_capture_json_does_not_say_is_known(whole, truth):
    whole.make("open_transactions")
    settings = whole.run.settings
    assert (settings.coordinator_partitions, settings.coordinator_partitions_basis) == (
        truth["coordinator_partitions"],
        "GIVEN",
    )
    assert settings.transaction_version == 2
    assert settings.producer_id_expiration_ms == 10_800_000, "set dynamically, twice"
    assert "producer.id.expiration.ms" not in settings.assumed
    assert "transaction.max.timeout.ms" in settings.assumed, "only in server.properties"
    assert settings.contradictions == ()


def test_beside_a_metadata_log_no_brokers_are_older_than_it(whole):
    """Commands for brokers before 3.0, and a warning of them, would be about a cluster that cannot be."""
    whole.make("abort_plan")
    settings = whole.run.settings
    assert (settings.kafka_version, _version_or_oldest(whole.run)) == (None, "3.0+")
    assert not any(row["command_for_old_brokers"] for row in whole.rows("abort_plan"))


def test_every_open_transaction_of_the_truth_is_found_and_no_other(whole, truth):
    found = {(row["topic"], row["partition"], row["producer_id"]) for row in whole.rows("open_transactions")}
    assert found == {(each["topic"], each["partition"], each["producer_id"]) for each in truth["open"]}


def test_lost_markers_are_proven_by_the_elections_that_lost_them(whole):
    proven = {
        row["transactional_id"]: row["causes"][0]
        for row in whole.rows("open_transactions")
        if row["causes"] and row["causes"][0]["likelihood"] == "PROVEN"
    }
    assert set(proven) == {"md-marker-lost", "md-marker-lost-abort", "md-u2-marker-lost", "md-single-stuck"}
    assert "offset 184 of __cluster_metadata" in proven["md-marker-lost"]["evidence"]
    assert "offset 184 of __cluster_metadata" in proven["md-marker-lost-abort"]["evidence"]
    assert "offset 308 of __cluster_metadata" in proven["md-u2-marker-lost"]["evidence"]
    assert "still has the offsets 5 to 10" in proven["md-u2-marker-lost"]["evidence"]
    assert proven["md-single-stuck"]["cause"].startswith("the partition has no leader")


def test_copies_of_deleted_topics_are_told_and_not_judged(whole):
    old = {(row["topic"], row["partition"]): row for row in whole.rows("coverage") if row["is_deleted"]}
    assert set(old) == {("md.gone", 0), ("md.recreated", 0), ("md.recreated", 1)}
    assert {row["source"] for row in old.values()} == {"raw:3"}
    assert not any(row["is_judged"] for row in old.values())
    named = {
        (row["name"], row["topic"]) for row in whole.rows("findings") if row["topic"] in ("md.gone", "md.recreated")
    }
    assert named == {("COPY_OF_DELETED_TOPIC", "md.gone"), ("COPY_OF_DELETED_TOPIC", "md.recreated")}


def test_a_partition_without_a_leader_is_known_by_its_last_in_sync_replica(whole):
    (row,) = [row for row in whole.rows("coverage") if (row["topic"], row["partition"]) == ("md.single", 0)]
    assert (row["leader"], row["role"], row["is_current"], row["broker"]) == ("-1", "LAST_LEADER", True, "3")


def test_transactions_of_topics_that_are_gone_are_found(whole):
    found = {row["evidence"] for row in whole.rows("findings") if row["name"] == "UNKNOWN_TOPIC_OR_PARTITION"}
    assert found == {"Ongoing with md.gone-0", "Ongoing with md.recreated-0, md.recreated-1"}


@pytest.mark.slow
def test_without_the_leader_nothing_is_decided_and_its_broker_is_named(capture, tmp_path):
    rows = audit_of(capture, without(capture, tmp_path, "1", "100")).rows("open_transactions")
    assert {row["verdict"] for row in rows} == {"UNKNOWN"}
    assert all("broker 1 leads it" in row["explanation"] for row in rows)
    assert not any(row["safe_to_abort"] for row in rows)


@pytest.mark.slow
def test_a_dead_disk_alone_proves_nothing(capture, tmp_path):
    tables = audit_of(capture, without(capture, tmp_path, "1", "2", "100"))
    assert not any(row["safe_to_abort"] for row in tables.rows("open_transactions"))
    assert {row["leader_basis"] for row in tables.rows("coverage") if row["status"] != "MISSING"} <= {
        "METADATA_LOG_STALE",
        None,
    }
    assert {row["verdict"] for row in tables.rows("open_transactions")} <= {"UNKNOWN", "HANGING"}


@pytest.mark.slow
def test_metadata_from_text_is_as_good_as_from_files(capture, tmp_path, whole, truth):
    """Logs without their metadata log, and beside them the text of it."""
    folder = without(capture, tmp_path, "100")
    for path in folder.glob("*/__cluster_metadata-0"):
        shutil.rmtree(path)
    text = tmp_path / "text"
    shutil.copytree(capture / "dumps" / "metadata-4.3.1", text)
    os.remove(text / "1-bootstrap.checkpoint.txt")
    tables = audit_of(capture, folder, text)

    def verdicts(audit):
        columns = ("topic", "partition", "producer_id", "verdict", "reason", "safe_to_abort")
        return sorted(tuple(row[name] for name in columns) for row in audit.rows("open_transactions"))

    assert verdicts(tables) == verdicts(whole)
