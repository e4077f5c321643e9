"""Captures of brokers of other versions than the tests' own."""

from __future__ import annotations

import io
import json
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import kafka, producers, wire_client
from tests.support.audits import audited
from tests.support.wire_captures import JUDGED, instant_of, log_of, notes_of, notes_of_disks
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.wire_capture.capture import ALL, OPEN, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress

pytestmark = pytest.mark.slow


def _take(bootstrap: str, output: Path, scope: str) -> None:
    with Client(bootstrap, {}) as client:
        take_capture(client, CaptureRequest(output, scope=scope, context=3, cluster="night"), Progress(io.StringIO()))


@pytest.mark.parametrize("version", ["3.7.2", "3.9.2", "4.0.1", "4.2.0", "4.3.1"])
def test_a_capture_is_what_the_disk_has(tmp_path: Path, version: str) -> None:
    settings = {"transaction_state_log_num_partitions": "2", "transaction_partition_verification_enable": "false"}
    with kafka.running(tmp_path / "cluster", version=version, **settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for created in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("stuck", 1, 1)]).values():
            created.result(30)
        begun = int(time.time() * 1000) - 7_200_000
        wire_client.write_outside_a_transaction(cluster.bootstrap, "raw-client", "stuck", 0, timestamp=begun)
        with producers.busy(cluster.bootstrap, "orders", 2):
            late = producers.transactional(cluster.bootstrap, "late-one")
            late.begin_transaction()
            producers.write(late, "orders", 2, 2)
            time.sleep(2 * CLOCKS_DIFFER_MS / 1000)  # else it may have begun between the copies, as far as clocks tell
            _take(cluster.bootstrap, tmp_path / "busy", ALL)
        for scope in (OPEN, ALL):
            _take(cluster.bootstrap, tmp_path / scope, scope)
        disk = tmp_path / "disk" / "1"
        shutil.copytree(cluster.nodes[1] / "data", disk)
        late.abort_transaction(30)
        del late  # or it would look for brokers when they are gone
    for capture in ("busy", ALL):
        for fetched in (tmp_path / capture / "1").glob("*-[0-9]"):
            wire, whole = log_of(fetched), log_of(disk / fetched.name)
            assert whole.startswith(wire), fetched
            assert capture == "busy" or whole == wire, fetched
    assert version.startswith(notes_of(tmp_path / ALL)["kafka_version"])
    (tmp_path / "disk" / "capture.json").write_text(json.dumps(notes_of_disks(tmp_path / ALL)))
    instant = instant_of(tmp_path / ALL)
    tables = {name: audited(tmp_path / name, "--as-of", str(instant)) for name in (OPEN, ALL, "disk")}
    found = {
        name: sorted(tuple(row[column] for column in JUDGED) for row in each.rows("open_transactions"))
        for name, each in tables.items()
    }
    assert found[OPEN] == found[ALL] == found["disk"]
    assert {(row[0], row[5]) for row in found[ALL]} == {("stuck", "HANGING"), ("orders", "OPEN")}
    assert not [row for name in (OPEN, ALL) for row in tables[name].rows("findings") if row["name"].startswith("LIVE_")]
