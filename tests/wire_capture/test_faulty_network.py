"""A network that delays, cuts, shortens and corrupts answers.

Every fault is repaired by asking again, or named: never is a partition called whole that is not what its leader has.
"""

from __future__ import annotations

import io
import random
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.fake_brokers import FakeBrokers, Log, filled
from tests.support.wire_brokers import proxied, served
from tests.support.wire_captures import log_of, notes_of
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.errors import TxnlibError
from txnlib.wire_capture import capture as capture_module
from txnlib.wire_capture import client as client_module
from txnlib.wire_capture import fetch as log_module
from txnlib.wire_capture.capture import ALL, Captured, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress

pytestmark = pytest.mark.slow
Fault = Callable[[random.Random, bytes], bytes | None]
SEEDS = range(4)
#: Of the client library.
CONFIG = {
    "request_timeout_ms": 200, "reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 10,
    "socket_connection_setup_timeout_ms": 300,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(client_module, "_TRIES_SECONDS", 1)
    monkeypatch.setattr(client_module, "_OPTIONAL_SECONDS", 0.3)
    monkeypatch.setattr(client_module, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(client_module, "_SILENT_SECONDS", 0)
    monkeypatch.setattr(capture_module, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(log_module, "_MOST_THROTTLE_SECONDS", 0.1)
    return


def _brokers() -> FakeBrokers:
    logs: dict[tuple[str, int], Log] = {
        (TRANSACTION_STATE_TOPIC, number): filled(8, leader=number + 1) for number in range(2)
    }
    logs |= {(f"topic{number}", 0): filled(20, leader=number % 2 + 1, last_stable=6) for number in range(4)}
    return FakeBrokers(logs, most_batches=4)


def delay(chance: random.Random, answer: bytes) -> bytes:
    time.sleep(chance.random() / 50)
    return answer


def cut(chance: random.Random, answer: bytes) -> None:
    return None


def shorten(chance: random.Random, answer: bytes) -> bytes:
    """Part of an answer, which says that it is all."""
    kept = answer[4 : 4 + chance.randrange(1, len(answer) - 4)]
    return struct.pack(">i", len(kept)) + kept


def stop_short(chance: random.Random, answer: bytes) -> bytes:
    """Part of an answer, and the rest never comes."""
    return answer[: chance.randrange(1, len(answer))]


def corrupt(chance: random.Random, answer: bytes) -> bytes:
    """One other bit anywhere behind the size."""
    at = chance.randrange(4, len(answer))
    return answer[:at] + bytes([answer[at] ^ 1 << chance.randrange(8)]) + answer[at + 1 :]


def repeat(chance: random.Random, answer: bytes) -> bytes:
    return answer + answer


FAULTS: list[Fault] = [delay, cut, shorten, stop_short, corrupt, repeat]


def _capture(fake: FakeBrokers, output: Path, fault: Fault, seed: int, share: float) -> Captured | str:
    """What a capture says through this network: what became of each partition, or why there is none."""
    chance = random.Random(seed)
    with proxied([1, 2]) as (proxy, ports), served(fake, ports=ports) as own:
        proxy.targets = own
        # The first connection is tried once: what fails there is named at once (test_connection_failure.py).
        proxy.fault = lambda number, answer: fault(chance, answer) if number > 6 and chance.random() < share else answer
        try:
            with Client(f"127.0.0.1:{ports[1]}", CONFIG) as client:
                return take_capture(client, CaptureRequest(output, scope=ALL, context=3), Progress(io.StringIO()))
        except TxnlibError as error:
            return str(error)


def _assert_nothing_is_lost_in_silence(fake: FakeBrokers, output: Path, captured: Captured | str) -> None:
    if isinstance(captured, str):
        assert captured
        return
    assert {each.partition.folder for each in captured.taken} == {f"{topic}-{number}" for topic, number in fake.logs}
    noted = notes_of(output)["partitions"]
    for each in captured.taken:
        log = fake.logs[each.partition.topic, each.partition.partition]
        wire = b"".join(log_of(folder) for folder in output.glob(f"*/{each.partition.folder}"))
        if each.problem is None:
            assert wire == log.content(), each
            assert (each.end_offset, each.high_watermark, each.log_start) == (log.end, log.end, 0)
        else:
            assert log.content().startswith(wire), each
            assert noted[each.partition.folder]["problem"] == each.problem


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_is_repaired_or_named(tmp_path: Path, fault: Fault, seed: int) -> None:
    fake = _brokers()
    captured = _capture(fake, tmp_path, fault, seed, share=0.1)
    _assert_nothing_is_lost_in_silence(fake, tmp_path, captured)


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_through_a_faulty_network_end_with_the_whole_capture(tmp_path: Path, seed: int) -> None:
    """All kinds of faults, fewer with each call; the last call has none."""
    fake = _brokers()
    chance = random.Random(seed)
    for share in (0.2, 0.05, 0):
        captured = _capture(fake, tmp_path, lambda its, answer: chance.choice(FAULTS)(its, answer), seed, share)
        _assert_nothing_is_lost_in_silence(fake, tmp_path, captured)
    assert isinstance(captured, Captured)
    assert [each.problem for each in captured.taken] == [None] * len(fake.logs)
