"""A second call finds what the first one left in the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_brokers import FakeBrokers, Log, brokers_with, filled, taken_by
from tests.support.wire_captures import log_of, notes_of
from txnlib.errors import UsageError
from txnlib.wire_capture.capture import ALL, OPEN

ORDERS = ("orders", 0)


def test_the_copy_of_a_partition_where_nothing_is_open_any_more_is_removed(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(last_stable=4))
    taken_by(fake, tmp_path, scope=OPEN)
    assert (tmp_path / "1" / "orders-0").exists()
    fake.logs[ORDERS].last_stable = None
    found = taken_by(fake, tmp_path, scope=OPEN)
    assert found["orders-0"].captured_at_ms is None
    assert not list(tmp_path.glob("*/orders-0*"))
    assert "1/orders-0" not in notes_of(tmp_path)["captured_at_ms"]


def test_a_copy_goes_to_the_folder_of_its_new_leader(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled())
    taken_by(fake, tmp_path, scope=ALL)
    log = fake.logs[ORDERS]
    log.leader, log.epoch = 2, 1
    log.append()
    fake.asked.clear()
    taken_by(fake, tmp_path, scope=ALL)
    assert log_of(tmp_path / "2" / "orders-0") == log.content()
    assert fake.asked.count("Fetch") == 1 + 2  # two, to compare what is whole of the coordinator
    assert not list(tmp_path.glob("1/orders-0*"))


def test_a_copy_that_ends_before_what_is_open_begins_is_fetched_anew(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(last_stable=4))
    taken_by(fake, tmp_path, scope=OPEN)
    log = fake.logs[ORDERS]
    for _ in range(20):
        log.append()
    log.last_stable = 50
    assert taken_by(fake, tmp_path, scope=OPEN, context=2)["orders-0"].fetched_from == 48
    assert log_of(tmp_path / "1" / "orders-0") == log.content(48)


def test_a_call_with_other_topics_keeps_copies_and_notes(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(), payments=filled())
    taken_by(fake, tmp_path, scope=ALL, topics="orders")
    first = notes_of(tmp_path)
    taken_by(fake, tmp_path, scope=ALL, topics="payments")
    both = notes_of(tmp_path)
    assert both["partitions"]["orders-0"] == first["partitions"]["orders-0"]
    assert both["captured_at_ms"]["1/orders-0"] == first["captured_at_ms"]["1/orders-0"]
    assert {"orders-0", "payments-0"} <= set(both["partitions"])


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "did not take"),
        ('{"captured_by": "scripts/capture.sh"}', "did not take"),
        ('{"captured_by": "txn-audit capture", "cluster_id": "other"}', "of cluster other, not of fake"),
    ],
)
def test_the_folder_of_another_capture_is_left_alone(tmp_path: Path, before: str, said: str) -> None:
    (tmp_path / "capture.json").write_text(before)
    with pytest.raises(UsageError, match=said):
        taken_by(brokers_with(orders=filled()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["capture.json"]
    assert (tmp_path / "capture.json").read_text() == before


def test_the_copy_of_a_broker_without_leader_stays(tmp_path: Path) -> None:
    fake = FakeBrokers({ORDERS: Log(leader=2)})
    fake.logs[ORDERS].append()
    taken_by(fake, tmp_path, scope=ALL)
    fake.logs[ORDERS].leader = -1
    found = taken_by(fake, tmp_path, scope=ALL)
    assert found["orders-0"].problem == "no broker leads it"
    assert log_of(tmp_path / "2" / "orders-0") == fake.logs[ORDERS].content()
