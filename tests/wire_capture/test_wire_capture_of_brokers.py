"""Captures of two busy brokers, held against their disks."""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import kafka, producers, wire_client
from tests.support.audits import audited
from tests.support.wire_captures import JUDGED, instant_of, log_of, notes_of_disks
from txnlib.readers.capture import FileKind, list_capture
from txnlib.wire_capture.capture import ALL, OPEN, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress, Taken

pytestmark = pytest.mark.slow
TWO_HOURS = 7_200_000
ORDERS = 3
CONTEXT = 5


@dataclass(frozen=True)
class Night:
    """Captures of one cluster: busy, by both scopes when quiet, with a dead broker, and its disks."""

    folder: Path
    open: list[Taken]
    #: Names of the requests of a second call with the same folder.
    asked_again: list[str]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    folder = tmp_path_factory.mktemp("brokers")
    settings = {"transaction_state_log_num_partitions": "3", "transaction_partition_verification_enable": "false"}
    with kafka.running(folder / "cluster", 2, **settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [
            NewTopic("orders", ORDERS, 2, config={"segment.ms": "300"}),
            NewTopic("stuck", 1, 1),
            NewTopic("quiet", 1, 2),
        ]
        for created in admin.create_topics(topics).values():
            created.result(30)
        begun = int(time.time() * 1000) - TWO_HOURS
        wire_client.write_outside_a_transaction(cluster.bootstrap, "raw-client", "stuck", 0, timestamp=begun)
        with producers.busy(cluster.bootstrap, "orders", ORDERS):
            late = producers.transactional(cluster.bootstrap, "late-one")
            late.begin_transaction()
            producers.write(late, "orders", ORDERS, 2)
            time.sleep(1)
            _take(cluster.bootstrap, folder / "busy", ALL)
        opened = _take(cluster.bootstrap, folder / OPEN, OPEN)
        _take(cluster.bootstrap, folder / ALL, ALL)
        asked: list[str] = []
        _take(cluster.bootstrap, folder / ALL, ALL, asked)
        _await_checkpoints(cluster, "stuck 0 1")
        for node, path in cluster.nodes.items():
            shutil.copytree(path / "data", folder / "disk" / str(node))
        (folder / "disk" / "capture.json").write_text(json.dumps(notes_of_disks(folder / ALL)))
        yield Night(folder, opened, asked)


def _await_checkpoints(cluster: kafka.Cluster, line: str) -> None:
    """Waits until a broker noted a high watermark: each does so every
    `replica.high.watermark.checkpoint.interval.ms`."""
    until = time.monotonic() + 30
    while not any(
        line in (path / "data" / "replication-offset-checkpoint").read_text() for path in cluster.nodes.values()
    ):
        assert time.monotonic() < until
        time.sleep(0.2)


class Noting(Client):
    """A client that notes which requests it sends."""

    asked: list[str]

    def ask(self, request: Any, broker: int | None = None, **how: Any) -> Any:
        self.asked.append(request.name)
        return super().ask(request, broker, **how)


def _take(bootstrap: str, output: Path, scope: str, asked: list[str] | None = None) -> list[Taken]:
    with Noting(bootstrap, {}) as client:
        client.asked = [] if asked is None else asked
        return take_capture(
            client, CaptureRequest(output, scope=scope, context=CONTEXT, cluster="night"), Progress(io.StringIO())
        ).taken


@pytest.mark.parametrize("capture", ["busy", ALL])
def test_fetched_batches_are_those_on_disk_byte_for_byte(night: Night, capture: str) -> None:
    compared = 0
    for fetched in (night.folder / capture).glob("[0-9]/*-[0-9]"):
        wire, disk = log_of(fetched), log_of(night.folder / "disk" / fetched.parent.name / fetched.name)
        assert disk.startswith(wire), fetched
        assert capture == "busy" or disk == wire, fetched
        compared += len(wire)
    assert compared > 100_000


def test_scope_open_fetches_the_end_of_the_same_log(night: Night) -> None:
    for number in range(ORDERS):
        (tail,) = [log_of(path) for path in (night.folder / OPEN).glob(f"[0-9]/orders-{number}")]
        (whole,) = [log_of(path) for path in (night.folder / ALL).glob(f"[0-9]/orders-{number}")]
        assert whole.endswith(tail)
        assert 0 < len(tail) < len(whole)


def test_a_second_call_fetches_nothing_again(night: Night) -> None:
    copies = list((night.folder / ALL).glob("*/*/fetch.capture")) + list(
        (night.folder / ALL).glob("*/first/*/fetch.capture")
    )
    assert 0 < night.asked_again.count("FetchRequest") <= len(copies), "more than to compare each with the leader's log"
    assert "ListOffsetsRequest" in night.asked_again


@pytest.mark.parametrize("capture", ["busy", OPEN, ALL])
def test_every_file_of_the_capture_is_known(night: Night, capture: str) -> None:
    assert list_capture([str(night.folder / capture)]).of_kind(FileKind.UNKNOWN, FileKind.REFUSED) == ()


def test_verdicts_are_the_same_by_both_scopes(night: Night) -> None:
    as_of = instant_of(night.folder / ALL)
    found = {
        scope: sorted(
            # Each capture has its own instant, from which an age is counted.
            tuple(str(row[column]).partition("; safe from")[0] for column in (*JUDGED, "do_not_abort_because"))
            for row in audited(night.folder / scope, "--as-of", str(as_of)).rows("open_transactions")
        )
        for scope in (OPEN, ALL, "disk")
    }
    assert found[OPEN] == found[ALL] == found["disk"]
    assert {(row[0], row[5]) for row in found[ALL]} == {("stuck", "HANGING"), ("orders", "OPEN")}


def _disagreements(folder: Path) -> set[tuple[str, str, int]]:
    as_of = instant_of(folder)
    rows = audited(folder, "--as-of", str(as_of)).rows("findings")
    return {(row["name"], row["topic"], row["offset"]) for row in rows if row["name"].startswith("LIVE_")}


def _changed(path: Path, name: str, change: Callable[[Any], Any]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for place in row.get("producers", [row]):
            if place[name] is not None:
                place[name] = change(place[name])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("capture", ["busy", OPEN, ALL])
def test_logs_agree_with_what_the_brokers_said(night: Night, capture: str) -> None:
    described = [path for path in (night.folder / capture).glob("*/describe-*.jsonl") if path.read_text()]
    assert {path.name for path in described} == {"describe-producers.jsonl", "describe-transactions.jsonl"}
    assert _disagreements(night.folder / capture) == set()


def test_a_log_that_disagrees_with_its_brokers_is_found(night: Night, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    shutil.copytree(night.folder / OPEN, folder)
    for path in folder.glob("*/describe-producers.jsonl"):
        _changed(path, "current_transaction_start_offset", lambda start: start + 1)
    for path in folder.glob("*/describe-transactions.jsonl"):
        _changed(path, "producer_epoch", lambda epoch: epoch + 1)
    found = _disagreements(folder)
    assert {(name, topic) for name, topic, _ in found} == {
        ("LIVE_ANSWER_DISAGREES", "orders"),
        ("LIVE_ANSWER_DISAGREES", "stuck"),
        ("LIVE_ANSWER_DISAGREES", "__transaction_state"),
    }
    assert ("LIVE_ANSWER_DISAGREES", "stuck", 0) in found
