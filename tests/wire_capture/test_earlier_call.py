"""A second call finds what the first one left in the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_brokers import FakeBrokers, Log, brokers_with, filled, taken_by
from tests.support.wire_captures import log_of, notes_of
from txnlib.errors import UsageError
from txnlib.wire_capture import fetch
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
        ("[" * 99_999, "is not JSON"),
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


# ---- The notes of an earlier call are foreign input: what the files do not confirm is fetched again


def change(**given: Any) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        state = folder / "fetch.capture"
        state.write_text(json.dumps(json.loads(state.read_text()) | given))

    return changed


def add(**given: int) -> Callable[[Path], None]:
    def added(folder: Path) -> None:
        noted = json.loads((folder / "fetch.capture").read_text())
        change(**{name: noted[name] + more for name, more in given.items()})(folder)

    return added


def put(content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / "fetch.capture").write_bytes(content) and None


def cut_log(folder: Path) -> None:
    (folder / f"{0:020}.log").write_bytes((folder / f"{0:020}.log").read_bytes()[:-1])


def damage_log(folder: Path) -> None:
    content = bytearray((folder / f"{0:020}.log").read_bytes())
    content[-1] ^= 1
    (folder / f"{0:020}.log").write_bytes(content)


def lose_log(folder: Path) -> None:
    (folder / f"{0:020}.log").unlink()


def add_log(folder: Path) -> None:
    """A segment that is not in the notes, as of a call that was killed after it had begun a new one."""
    (folder / f"{18:020}.log").write_bytes(b"what was written after the note")


def damage_topic_id(folder: Path) -> None:
    (folder / "partition.metadata").write_bytes(b"\xff\xfe")


NAMES = ("first_offset", "next_offset", "last_epoch", "segment", "size", "total", "last_size")
ODD: list[Any] = ["../../../precious", None, 1.0, True, -2, 2**70, [], {}]


@pytest.mark.parametrize(
    "tamper",
    [
        *(pytest.param(change(**{name: odd}), id=f"{name} {odd!r:.9}") for name in NAMES for odd in ODD),
        *(pytest.param(add(**{name: more}), id=f"{name} {more:+}") for name in NAMES for more in (-2, -1, 1, 2)),
        pytest.param(add(next_offset=-2, size=-1), id="rows would be doubled"),
        pytest.param(add(next_offset=4), id="rows would be missing"),
        *(pytest.param(put(content), id=f"{content[:9]!r}") for content in (b"", b"[]", b"{", b"\xff", b"[" * 99_999)),
        cut_log,
        damage_log,
        lose_log,
        add_log,
        damage_topic_id,
    ],
)
def test_a_copy_that_is_not_as_noted_is_fetched_again(tmp_path: Path, tamper: Callable[[Path], None]) -> None:
    fake = brokers_with(orders=filled())
    output, precious = tmp_path / "a" / "b" / "c", tmp_path / "precious"
    precious.write_text("mine")
    taken_by(fake, output, scope=ALL)
    tamper(output / "1" / "orders-0")
    fake.logs[ORDERS].append()
    assert taken_by(fake, output, scope=ALL)["orders-0"].problem is None
    assert log_of(output / "1" / "orders-0") == fake.logs[ORDERS].content()
    assert precious.read_text() == "mine"


def test_segments_that_were_begun_after_the_note_are_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = brokers_with(orders=filled())
    monkeypatch.setattr(fetch, "_SEGMENT_BYTES", 300)
    taken_by(fake, tmp_path, scope=ALL)
    folder = tmp_path / "1" / "orders-0"
    note = (folder / "fetch.capture").read_bytes()
    for _ in range(20):
        fake.logs[ORDERS].append()
    taken_by(fake, tmp_path, scope=ALL)
    (folder / "fetch.capture").write_bytes(note)
    fake.asked.clear()
    taken_by(fake, tmp_path, scope=ALL)
    assert log_of(folder) == fake.logs[ORDERS].content()
    assert fake.asked.count("Fetch") < 25, "it began anew"


@pytest.mark.parametrize("link", ["1/orders-0", f"1/orders-0/{0:020}.log", "1/orders-0/partition.metadata.tmp"])
def test_a_link_in_a_capture_is_not_followed(tmp_path: Path, link: str) -> None:
    fake = brokers_with(orders=filled())
    output, precious = tmp_path / "c", tmp_path / "precious"
    taken_by(fake, output, scope=ALL)
    path = output / link
    if path.exists():
        path.rename(precious)
    else:
        precious.write_text("mine")
    path.symlink_to(precious)

    def seen() -> dict[Path, bytes]:
        return {each: each.read_bytes() for each in (precious, *precious.rglob("*")) if each.is_file()}

    before = seen()
    fake.logs[ORDERS].append()
    fake.topic_id += link.endswith(".tmp")
    assert taken_by(fake, output, scope=ALL)["orders-0"].problem is None
    assert log_of(output / "1" / "orders-0") == fake.logs[ORDERS].content()
    assert seen() == before


@pytest.mark.parametrize(
    "noted",
    [
        {"partitions": []},
        {"partitions": {"orders-0": "led"}},
        {"partitions": {"../../../precious-0": {}}},
        {"captured_at_ms": 1},
        {"captured_at_ms": {"1/orders-0": "yesterday"}},
        {"captured_at_ms": {"1/orders-0": True}},
        {"captured_at_ms": {"1/orders-0": -1}},
    ],
)
def test_notes_of_other_types_are_refused(tmp_path: Path, noted: dict[str, Any]) -> None:
    fake = brokers_with(orders=filled())
    taken_by(fake, tmp_path)
    (tmp_path / "capture.json").write_text(json.dumps(notes_of(tmp_path) | noted))
    with pytest.raises(UsageError, match="is damaged: remove it, or choose another output="):
        taken_by(fake, tmp_path)
