"""What a broker says never leads out of the capture's folder."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_brokers import FakeBrokers, brokers_with, filled, taken_by
from tests.support.wire_brokers import served
from tests.support.wire_captures import log_of, notes_of
from txnlib.errors import UnreadableInputError
from txnlib.wire_capture.capture import ALL, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.partition_copy import Progress

FORBIDDEN = [
    "../../../precious", "/{tmp}/precious", "orders/../../../../precious", ".", "..", "", "a b", "ä", "orders\n",
    "orders\0", "\x1b[2Jorders", "o" * 250,
]  # fmt: skip


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A folder for the capture, deep in one that has what must not be touched."""
    for name in ("precious-0", "a/precious-0", "a/b/precious-0", "precious--1"):
        (tmp_path / name).mkdir(parents=True)
        for file in ("diary.txt", "fetch.capture", "00000000000000000000.log", "partition.metadata"):
            (tmp_path / name / file).write_text("mine")
    return tmp_path / "a" / "b" / "capture"


def outside(output: Path) -> dict[str, str]:
    """All files beside the capture."""
    root = output.parents[2]
    found = [path for path in sorted(root.rglob("*")) if output not in path.parents and path.is_file()]
    return {str(path.relative_to(root)): path.read_text() for path in found}


class Rogue(FakeBrokers):
    """Answers as `change` makes them."""

    change: Callable[[Any, Any], None]

    def _Metadata(self, request: Any, broker: int | None) -> Any:
        answer = super()._Metadata(request, broker)
        self.change(request, answer)
        return answer


def rogue(change: Callable[[Any, Any], None]) -> Rogue:
    fake = Rogue(brokers_with(orders=filled(last_stable=4)).logs)
    fake.change = change
    return fake


@pytest.mark.parametrize("is_dry_run", [False, True])
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_topic_that_kafka_forbids_ends_the_capture(output: Path, name: str, is_dry_run: bool) -> None:
    before, topic = outside(output), name.format(tmp=output.parents[2])
    fake = FakeBrokers({("orders", 0): filled(), (topic, 0): filled(last_stable=4)})
    with pytest.raises(UnreadableInputError, match=r"broker 1: it names a topic '.*', and Kafka forbids that name"):
        taken_by(fake, output, scope=ALL, is_dry_run=is_dry_run)
    assert outside(output) == before
    assert not output.exists()


def test_a_name_that_kafka_forbids_ends_the_capture_over_a_network(output: Path) -> None:
    fake, before = FakeBrokers({("../../../precious", 0): filled(leader=3)}), outside(output)
    with served(fake) as ports, Client(f"127.0.0.1:{ports[3]}", {}) as client:
        wanted = CaptureRequest(output, scope=ALL)
        with pytest.raises(UnreadableInputError, match=r"broker 3: it names a topic '../../../precious'"):
            take_capture(client, wanted, Progress(io.StringIO()))
    assert outside(output) == before


def test_a_name_that_a_later_answer_brings_ends_the_capture(output: Path) -> None:
    """When the leader moves, the new one is asked for."""

    def rename(request: Any, answer: Any) -> None:
        if request.topics is not None and request.topics[0].name == "orders":
            answer.topics[0].name = "../../../precious"

    fake, before = rogue(rename), outside(output)
    fake.before_fetch = lambda number: vars(fake.logs["orders", 0]).update(epoch=1)
    with pytest.raises(UnreadableInputError, match=r"it names a topic '../../../precious'"):
        taken_by(fake, output, scope=ALL)
    assert outside(output) == before


def _swap_topic(request: Any, answer: Any) -> None:
    if request.topics is not None:
        answer.topics.append(SimpleNamespace(**vars(answer.topics[0]) | {"name": "other"}))


def test_topics_that_nobody_asked_for_are_left_out(output: Path) -> None:
    found = taken_by(rogue(_swap_topic), output, scope=ALL)
    assert set(found) == {"__transaction_state-0", "orders-0"}


def _negative_partition(_: Any, answer: Any) -> None:
    answer.topics[-1].partitions[0].partition_index = -1


def _negative_leader(_: Any, answer: Any) -> None:
    answer.topics[-1].partitions[0].leader_id = -2


def _negative_broker(_: Any, answer: Any) -> None:
    answer.brokers.append(SimpleNamespace(node_id=-2))


def _same_partition_twice(_: Any, answer: Any) -> None:
    first = answer.topics[-1].partitions[0]
    answer.topics[-1].partitions.append(SimpleNamespace(**vars(first) | {"leader_id": first.leader_id + 1}))


@pytest.mark.parametrize("change", [_negative_partition, _negative_leader, _negative_broker, _same_partition_twice])
def test_numbers_that_kafka_does_not_have_are_a_damaged_answer(output: Path, change: Any) -> None:
    with pytest.raises(UnreadableInputError, match=r"no broker says what it has: metadata: the answer is damaged"):
        taken_by(rogue(change), output, scope=ALL)
    assert not output.exists()


def test_a_batch_below_the_first_offset_is_damaged(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled())

    def negative(number: int, answer: SimpleNamespace) -> SimpleNamespace:
        said = answer.responses[0].partitions[0]
        said.records = (-1).to_bytes(8, "big", signed=True) + said.records[8:]
        return answer

    fake.instead = negative
    found = taken_by(fake, tmp_path, scope=ALL)["orders-0"]
    assert found.problem == "orders-0: the batch at offset -1, up to 0, is damaged in every answer"
    assert log_of(tmp_path / "1" / "orders-0") == b""


def test_settings_that_are_no_numbers_are_not_noted(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled())
    said = {"transaction.max.timeout.ms": "²", "producer.id.expiration.ms": "9" * 5_000, "sasl.jaas.config": "secret"}
    configs = [SimpleNamespace(name=name, value=value) for name, value in said.items()]
    fake._DescribeConfigs = lambda *_: SimpleNamespace(  # type: ignore[method-assign]
        results=[SimpleNamespace(error_code=0, configs=configs)]
    )
    assert taken_by(fake, tmp_path)["orders-0"].problem is None
    notes = notes_of(tmp_path)
    assert not {"transaction_max_timeout_ms", "producer_id_expiration_ms"} & notes.keys()
    assert "sasl.jaas.config" not in notes["broker_settings"]


def test_progress_lines_are_escaped() -> None:
    out = io.StringIO()
    Progress(out).say("orders\x1b[2J\ncapture: all is well")
    assert out.getvalue() == "capture: orders\\x1b[2J\\ncapture: all is well\n"
