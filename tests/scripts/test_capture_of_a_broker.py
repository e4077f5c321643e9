"""An audit of what scripts/capture.sh copies from a busy broker.

One broker of Kafka's own jars, for all tests here: two producers commit and abort all the time, one has a transaction
open, and one batch hangs: two hours old by its client's clock, and unknown to its coordinator.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import kafka, producers, wire_client
from tests.support.audits import audited
from tests.support.delta_tables import READ_BY_COMMANDS
from txnlib.ask.delta_rows import Tables
from txnlib.core.finding import Severity
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.readers.capture_notes import read_capture_notes

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "capture.sh"
TWO_HOURS = 7_200_000
HANGING = ("stuck", 0, "raw-client", "HANGING", "PARTITION_NOT_IN_TRANSACTION")
OPEN = ("stuck", 0, "open-one", "OPEN")


@dataclass(frozen=True)
class Taken:
    """What was copied, in which order, and what the live tool said afterwards."""

    raw: Path
    short: Path
    text: Path
    instants_when_killed: dict[str, int]
    producer_id: int
    find_hanging: str


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    folder = tmp_path_factory.mktemp("broker")
    settings = {"transaction_state_log_num_partitions": "2", "transaction_partition_verification_enable": "false"}
    with kafka.running(folder, **settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [NewTopic("orders", 3, 1, config={"segment.ms": "300"}), NewTopic("stuck", 1, 1)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        begun = int(time.time() * 1000) - TWO_HOURS
        producer_id = wire_client.write_outside_a_transaction(
            cluster.bootstrap, "raw-client", "stuck", 0, timestamp=begun
        )
        open_one = producers.transactional(cluster.bootstrap, "open-one")
        open_one.begin_transaction()
        producers.write(open_one, "stuck", 1, 1)
        with producers.busy(cluster.bootstrap, "orders", 3):
            instants = _killed(cluster, folder / "raw")
            asked = ("--kafka-home", cluster.home, "--bootstrap-server", cluster.bootstrap, "--cluster", "night")
            _capture(cluster, folder / "raw", *asked)
            _capture(cluster, folder / "short", "--since-snapshot", "--link")
            few = ("--partitions", "stuck-0", "--step", "partitions", "--step", "coordinators-again")
            _capture(cluster, folder / "text", "--text", "--kafka-home", cluster.home, *few)
        said = cluster.tool("kafka-transactions.sh", "find-hanging", "--broker-id", "1")
        yield Taken(folder / "raw", folder / "short", folder / "text", instants, producer_id, said)


def _command(cluster: kafka.Cluster, out: Path, *options: object) -> list[str]:
    properties = cluster.nodes[1] / "server.properties"
    return [str(SCRIPT), "--output", str(out), "--server-properties", str(properties), *map(str, options)]


def _capture(cluster: kafka.Cluster, out: Path, *options: object) -> None:
    done = subprocess.run(_command(cluster, out, *options), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _killed(cluster: kafka.Cluster, out: Path) -> dict[str, int]:
    """The instants that a call noted which was killed in the midst of the partitions."""
    process = subprocess.Popen(
        _command(cluster, out, "--limit-rate", "100K"), stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 30
    while not list((out / "1").glob("orders-*/*.log*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return read_capture_notes(str(out / "1" / "capture.json")).captured_at_ms


def judged(tables) -> list[tuple[object, ...]]:
    columns = ("topic", "partition", "transactional_id", "verdict", "reason")
    return sorted(tuple(row[name] for name in columns) for row in tables.rows("open_transactions"))


def alarms(tables) -> list[tuple[object, ...]]:
    return [row for row in judged(tables) if row[3] not in ("OPEN", "UNKNOWN")]


def test_one_transaction_hangs_one_is_open_and_those_in_flight_alarm_nobody(taken):
    tables = audited(taken.raw)
    assert alarms(tables) == [HANGING]
    assert OPEN in [row[:4] for row in judged(tables)]
    in_flight = {row[3:] for row in judged(tables) if row[0] == "orders"}
    assert {reason for verdict, reason in in_flight if verdict == "UNKNOWN"} <= {"CAPTURE_SKEW"}


def test_the_live_tool_names_the_same_one(taken):
    (row,) = [row for row in audited(taken.raw).rows("open_transactions") if row["verdict"] == "HANGING"]
    assert row["kafka_find_hanging"]
    (line,) = taken.find_hanging.splitlines()[1:]
    assert line.split()[:3] == ["stuck", "0", str(taken.producer_id)]
    assert row["producer_id"] == taken.producer_id


def test_every_copy_is_complete_though_the_call_was_killed_and_the_broker_wrote_on(taken):
    assert taken.instants_when_killed == {}
    tables = audited(taken.raw)
    rows = tables.rows("coverage")
    assert {(row["status"], row["detail"], row["is_instant_assumed"]) for row in rows} == {("COMPLETE", None, False)}
    assert len(rows) == 2 * 2 + 3 + 1 + 1, "coordinators twice, the topics, and the cluster's metadata"
    severe = [row for row in tables.rows("findings") if FINDINGS[row["name"]].severity is not Severity.INFO]
    assert severe == []


def test_each_copy_has_the_instant_at_which_it_was_taken(taken):
    rows = audited(taken.raw).rows("coverage")
    first = [row["captured_at"] for row in rows if row["source"] == "raw:1/first"]
    others = [row["captured_at"] for row in rows if not row["topic"].startswith("__")]
    again = [row["captured_at"] for row in rows if row["source"] == "raw:1" and row["topic"] == "__transaction_state"]
    assert max(first) < min(others) < max(others) < min(again)


def test_capture_json_names_cluster_leaders_and_settings_by_kafkas_tools(taken):
    tables = audited(taken.raw)
    notes = read_capture_notes(str(taken.raw / "1" / "capture.json"))
    assert (tables.run.settings.cluster, tables.run.settings.as_of_ms) == ("night", notes.instants.latest_ms)
    assert (notes.kafka_version, notes.transaction_version) == (os.environ["KAFKA_VERSION"], 2)
    assert (notes.coordinator_partitions, notes.transaction_max_timeout_ms) == (2, 900_000)
    assert (notes.transactional_id_expiration_ms, notes.producer_id_expiration_ms) == (604_800_000, 86_400_000)
    assert notes.broker_settings["transaction.partition.verification.enable"] == "false"
    assert {name: (noted.leader, noted.replicas) for name, noted in notes.partitions.items()} == {
        name: (1, [1])
        for name in ("orders-0", "orders-1", "orders-2", "stuck-0", "__transaction_state-0", "__transaction_state-1")
    }


def test_a_broker_that_gave_two_copies_is_one_replica(taken):
    tables = Tables(str(audited(taken.raw).finished(*READ_BY_COMMANDS)))
    assert tables.rows("brokers", ("replicas", "coordinators_led")) == [{"replicas": 7, "coordinators_led": 2}]


def test_from_the_newest_snapshots_on_the_same_is_seen(taken):
    kept = len(list(taken.short.glob("1/orders-*/*.log")))
    assert 3 <= kept < len(list(taken.raw.glob("1/orders-*/*.log")))
    tables = audited(taken.short)
    assert alarms(tables) == [HANGING]
    assert OPEN in [row[:4] for row in judged(tables)]


def test_text_of_kafkas_tool_shows_the_same(taken):
    tables = audited(taken.text)
    assert alarms(tables) == [HANGING]
    assert OPEN in [row[:4] for row in judged(tables)]
