"""Captures whose broker dies, and captures that die."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import kafka
from tests.support.wire_captures import command, log_of, notes_of
from txnlib.wire_capture.capture import ALL, Captured, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress

pytestmark = pytest.mark.slow
MIB = 1 << 20
SIZE = 48 * MIB
#: More than the note that a capture keeps of how far it is (`partition_copy._NOTE_BYTES`), and less than all.
ENOUGH = 24 * MIB


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[kafka.Cluster]:
    """Three brokers, so that two of them can elect a leader without the third one; one large partition."""
    quick = {"broker_session_timeout_ms": "3000", "broker_heartbeat_interval_ms": "500"}
    with kafka.running(tmp_path / "cluster", 3, **quick) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for created in admin.create_topics([NewTopic("orders", 1, 3)]).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": running.bootstrap, "acks": "all", "linger.ms": 50})
        for number in range(SIZE // 10_000):
            producer.produce("orders", number.to_bytes(4) * 2_500)
            producer.poll(0)
            if number % 1_000 == 999:
                assert producer.flush(60) == 0
        assert producer.flush(60) == 0
        yield running


def _leader(cluster: kafka.Cluster) -> int:
    topics = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics("orders", timeout=30).topics
    return int(topics["orders"].partitions[0].leader)


def _fetched(output: Path) -> int:
    return sum(path.stat().st_size for path in output.glob("*/orders-0/*.log"))


def _await_some(output: Path) -> None:
    until = time.monotonic() + 60
    while _fetched(output) < ENOUGH:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_leader_that_dies_is_followed(cluster: kafka.Cluster, tmp_path: Path) -> None:
    output, captured = tmp_path / "c", list[Captured]()

    def capture() -> None:
        with Client(cluster.bootstrap, {}) as client:
            captured.append(
                take_capture(client, CaptureRequest(output, scope=ALL, limit_rate=8 * MIB), Progress(io.StringIO()))
            )

    first = _leader(cluster)
    thread = threading.Thread(target=capture)
    thread.start()
    _await_some(output)
    cluster.processes[first].kill()
    thread.join(120)
    (orders,) = [taken for taken in captured[0].taken if taken.partition.topic == "orders"]
    assert orders.problem is None
    assert orders.partition.leader != first
    assert orders.notes == [
        f"its leader was broker {first} when the capture began, then broker {orders.partition.leader}"
    ]
    wire = log_of(output / str(orders.partition.leader) / "orders-0")
    assert len(wire) >= SIZE
    assert wire == log_of(cluster.nodes[orders.partition.leader] / "data" / "orders-0")
    assert not (output / str(first) / "orders-0").exists()
    noted = notes_of(output)["partitions"]["orders-0"]
    assert (noted["leader"], noted["notes"]) == (orders.partition.leader, orders.notes)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_capture_that_was_killed_goes_on(
    cluster: kafka.Cluster, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    output = tmp_path / "c"
    words = command(cluster.bootstrap, output, "--scope", ALL, "--format", "json")
    program = [sys.executable, "-m", "txnlib.ask.main", *words]
    running = subprocess.Popen([*program, "--limit-rate", "8M"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _await_some(output)
    running.send_signal(how)
    assert running.wait(10) == code
    (state,) = output.glob("*/orders-0/fetch.capture")
    assert 0 < json.loads(state.read_text())["total"] < SIZE
    segment = next(iter(output.glob("*/orders-0/*.log")))
    inode = segment.stat().st_ino
    again = subprocess.run(program, capture_output=True, text=True, check=True)
    (row,) = [row for row in json.loads(again.stdout) if row["topic"] == "orders"]
    assert (row["captured"], row["from_offset"]) == ("YES", 0)
    assert segment.stat().st_ino == inode, "it began anew"
    assert log_of(segment.parent) == log_of(cluster.nodes[row["leader"]] / "data" / "orders-0")
