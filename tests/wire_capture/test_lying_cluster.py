"""A broker that lies about its cluster: the capture ends, and says so.

It names brokers without end, addresses that hang or refuse, itself under many ids, partitions without end, and other
topics each time.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.support.fake_brokers import FakeBrokers, brokers_with, filled, taken_by
from tests.support.wire_brokers import listening, served
from txnlib.errors import UnreadableInputError
from txnlib.wire_capture import client as client_module
from txnlib.wire_capture import cluster
from txnlib.wire_capture.capture import ALL, Captured, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress

#: Of the client library.
CONFIG = {"request_timeout_ms": 200, "socket_connection_setup_timeout_ms": 300}


class Liar(FakeBrokers):
    """Answers for its metadata as `lie` makes it."""

    lie: Callable[[Any], None]

    def _Metadata(self, request: Any, broker: int | None) -> Any:
        answer = super()._Metadata(request, broker)
        self.lie(answer)
        return answer


def liar(lie: Callable[[Any], None]) -> Liar:
    fake = Liar(brokers_with(orders=filled(last_stable=4)).logs)
    fake.lie = lie
    return fake


def with_brokers(count: int) -> Callable[[Any], None]:
    """Names so many other brokers."""
    return lambda answer: answer.brokers.extend(SimpleNamespace(node_id=node) for node in others(count))


def with_leaders(count: int) -> Callable[[Any], None]:
    """Names so many other brokers, each of which leads a partition of `orders`."""

    def lie(answer: Any) -> None:
        with_brokers(count)(answer)
        for topic in (each for each in answer.topics if each.name == "orders"):
            known = vars(topic.partitions[0])
            topic.partitions += [
                SimpleNamespace(**known | {"partition_index": node, "leader_id": node}) for node in others(count)
            ]

    return lie


def others(count: int) -> range:
    return range(100, 100 + count)


def hang(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


@pytest.fixture
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, seconds in {"TRIES": 0.3, "OPTIONAL": 0.3, "PAUSE": 0.01, "VAIN": 1.0, "LAST": 0.02}.items():
        monkeypatch.setattr(client_module, f"_{name}_SECONDS", seconds)
    return


def captured(fake: FakeBrokers, ports: dict[int, int], output: Path) -> tuple[Captured, str, float]:
    """What was captured over loopback, what was said, and in how many seconds."""
    out, began = io.StringIO(), time.monotonic()
    with served(fake) as own:
        own.update(ports)
        with Client(f"127.0.0.1:{own[1]}", CONFIG) as client:
            result = take_capture(client, CaptureRequest(output, scope=ALL), Progress(out))
    return result, out.getvalue(), time.monotonic() - began


@pytest.mark.usefixtures("_short_waits")
@pytest.mark.parametrize("lie", [with_brokers, with_leaders])
@pytest.mark.parametrize("kind", ["hangs", "refuses"])
def test_brokers_that_cannot_be_reached_cost_a_bounded_time(tmp_path: Path, lie: Any, kind: str) -> None:
    with listening(hang) as hanging:
        port = hanging if kind == "hangs" else 1
        result, said, seconds = captured(liar(lie(30)), dict.fromkeys(others(30), port), tmp_path)

    problems = {taken.partition.folder: taken.problem for taken in result.taken}
    assert (problems["__transaction_state-0"], problems["orders-0"]) == (None, None)
    assert sum(problem is None for problem in problems.values()) == 2
    # 30 brokers at 0.3 s are 9 s, and each partition would be asked for again and again.
    assert seconds < 8, said
    assert "brokers had a second to answer, because others had not answered for minutes" in said
    assert "advertised.listeners" in said


@pytest.mark.usefixtures("_short_waits")
def test_who_answered_before_has_all_its_time(tmp_path: Path) -> None:
    """Others that hang do not take it away."""
    fake = liar(with_brokers(30))
    fake.logs["late", 0] = filled(leader=2)
    with listening(hang) as hanging:
        result, said, _ = captured(fake, dict.fromkeys(others(30), hanging), tmp_path)

    assert {taken.problem for taken in result.taken} == {None}, said


def test_one_broker_under_many_ids_is_captured(tmp_path: Path) -> None:
    fake = liar(with_brokers(300))
    out = io.StringIO()
    with served(fake) as own:
        own.update(dict.fromkeys(others(300), own[1]))
        with Client(f"127.0.0.1:{own[1]}", {}) as client:
            result = take_capture(client, CaptureRequest(tmp_path, scope=ALL), Progress(out))

    assert {taken.problem for taken in result.taken} == {None}


def test_more_brokers_than_a_cluster_can_have_end_the_capture(tmp_path: Path) -> None:
    output = tmp_path / "capture"
    with pytest.raises(UnreadableInputError, match=r"broker 1: it names 2,001 brokers, and a capture takes 1,000 at"):
        taken_by(liar(with_brokers(2_000)), output, scope=ALL)
    assert not output.exists()


def test_more_partitions_than_a_cluster_can_have_end_the_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_MOST_PARTITIONS", 20)

    with pytest.raises(UnreadableInputError, match=r"it names 32 partitions, and a capture takes 20 at most"):
        taken_by(liar(with_leaders(30)), tmp_path, scope=ALL)


def test_topics_with_another_id_each_time_end_with_a_problem(tmp_path: Path) -> None:
    count = 0

    def lie(answer: Any) -> None:
        nonlocal count
        for topic in answer.topics:
            count += 1
            topic.topic_id = UUID(int=count)

    out = io.StringIO()
    taken = taken_by(liar(lie), tmp_path, Progress(out), scope=ALL)

    assert "brokers answer differently what topics there are" in out.getvalue()
    assert all(each.problem for each in taken.values()), taken
