"""A limit on bytes per second holds, and progress is said."""

from __future__ import annotations

import io

from txnlib.wire_capture.pace import Pace, Progress


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
    progress.expect(100)
    progress.add(10, 20_480)
    clock.now = 5.0
    progress.add(10, 0)
    progress.add(10, 0)
    assert out.getvalue() == "capture: 20% of 100 offsets, 20 KiB at 4096 B/s, about 20 s left\n"
