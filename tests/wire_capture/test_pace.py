"""A limit on bytes per second holds, and progress is said."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.support.fake_brokers import FakeBrokers, brokers_with, filled, taken_by
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.wire_capture.capture import ALL
from txnlib.wire_capture.partition_copy import Pace, Progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_limit_is_kept_and_unused_time_is_not_saved_up() -> None:
    clock = Clock()
    pace = Pace(100, clock=clock, sleep=clock.sleep)
    pace(50)
    pace(50)
    assert clock.now == 1.0
    clock.now = 10.0
    pace(100)
    assert clock.now == 11.0


def test_without_a_limit_nobody_waits() -> None:
    clock = Clock()
    Pace(None, clock=clock, sleep=clock.sleep)(1 << 40)
    assert clock.now == 0.0


def test_progress_is_said_every_five_seconds_with_the_time_left() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)
    progress.expect("orders-0", 100)
    progress.add("orders-0", 10, 20_480)
    clock.now = 5.0
    progress.add("orders-0", 10, 0)
    progress.add("orders-0", 10, 0)
    assert out.getvalue() == "capture: 20% of 100 offsets, 20 KiB at 4096 B/s, about 20 s left\n"


@pytest.mark.parametrize("change", ["grows", "shrinks", "is truncated", "is compacted", "moves"])
def test_progress_counts_everything_once_and_never_more_than_all(tmp_path: Path, change: str) -> None:
    fake, said = brokers_with(orders=filled(40)), list[str]()
    log = fake.logs["orders", 0]
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)

    def meanwhile(number: int) -> None:
        clock.now += 5.0
        if number == 20:
            if change == "grows":
                for _ in range(40):
                    log.append()
            elif change == "is compacted":
                del log.batches[12:-1]
            elif change == "shrinks":
                del log.batches[:30]
                log.start = 60
            elif change == "is truncated":
                del log.batches[5:]
                log.epoch += 1
                log.append()
            else:
                log.leader, log.epoch = 2, 1

    fake.before_fetch = meanwhile
    taken_by(fake, tmp_path, progress, scope=ALL)
    said += re.findall(r"(\d+)% of", out.getvalue())
    assert said
    assert all(int(percent) <= 100 for percent in said)
    assert progress.text().startswith("100% of ")


def test_progress_counts_coordinators_from_the_start(tmp_path: Path) -> None:
    fake = FakeBrokers(
        {(TRANSACTION_STATE_TOPIC, 0): filled(10), (TRANSACTION_STATE_TOPIC, 1): filled(10), ("orders", 0): filled()}
    )
    clock, out = Clock(), io.StringIO()

    def meanwhile(number: int) -> None:
        clock.now += 5.0

    fake.before_fetch = meanwhile
    taken_by(fake, tmp_path, Progress(out, clock), scope=ALL)
    assert re.findall(r"(\d+% of \d+) offsets", out.getvalue())[0] == "0% of 40"
