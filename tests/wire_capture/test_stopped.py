"""A capture that Ctrl-C stops: at once, in one line, with what it has."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_brokers import brokers_with, filled, taken_by
from tests.support.wire_brokers import listening, served
from tests.support.wire_captures import command, log_of
from txnlib.wire_capture.capture import ALL

#: Far more than a stop takes, and far less than a client waits for an answer.
SECONDS = 10


def _capture(port: int, output: Path) -> list[str]:
    return [sys.executable, "-m", "txnlib.ask.main", *command(f"127.0.0.1:{port}", output, "--scope", ALL)]


def _stopped(program: list[str], reached: threading.Event) -> tuple[int, list[str]]:
    """Exit code and lines of a process that gets SIGINT once it has reached something."""
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert reached.wait(60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, said.splitlines()


def test_a_process_that_waits_for_two_leaders_stops_and_the_next_one_goes_on(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(40), others=filled(40, leader=2))
    reached, released = threading.Event(), threading.Event()

    def hang(number: int) -> None:
        if number >= 20:
            reached.set()
            released.wait(60)

    fake.before_fetch = hang
    with served(fake) as ports:
        try:
            code, lines = _stopped(_capture(ports[1], tmp_path), reached)
        finally:
            released.set()
        assert code == 130
        assert lines[1:] == [f"txn-audit: stopped. What was fetched stays in {tmp_path}: call it again to go on"]
        kept = sum(len(log_of(tmp_path / place)) for place in ("1/orders-0", "2/others-0"))
        assert kept > 0
        before = fake.asked.count("Fetch")
        subprocess.run(_capture(ports[1], tmp_path), check=True, capture_output=True)
    assert fake.asked.count("Fetch") - before < 80, "it began anew"
    assert log_of(tmp_path / "1/orders-0") == fake.logs["orders", 0].content()
    assert log_of(tmp_path / "2/others-0") == fake.logs["others", 0].content()


def test_a_process_that_waits_for_a_silent_broker_stops(tmp_path: Path) -> None:
    reached = threading.Event()

    def say_nothing(connection: Any) -> None:
        connection.recv(1)
        reached.set()
        threading.Event().wait(60)

    with listening(say_nothing) as port:
        code, lines = _stopped(_capture(port, tmp_path), reached)
    assert (code, len(lines)) == (130, 1)


def _joined(thread: threading.Thread) -> None:
    """Waits for the end of a thread, which cannot be joined before it has begun."""
    for _ in range(100 * SECONDS):
        try:
            return thread.join(SECONDS)
        except RuntimeError:
            time.sleep(0.01)


def test_no_leader_is_asked_again_after_an_interrupt(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(40), others=filled(40, leader=2))
    stopped_at: list[int] = []
    once, main = threading.Lock(), threading.main_thread().ident
    assert main is not None

    def interrupt(number: int) -> None:
        if number >= 20 and once.acquire(blocking=False):
            signal.pthread_kill(main, signal.SIGINT)
            fake.stopped.wait(SECONDS)
            stopped_at.append(fake.asked.count("Fetch"))

    fake.before_fetch = interrupt
    with pytest.raises(KeyboardInterrupt):
        taken_by(fake, tmp_path, scope=ALL)
    for thread in threading.enumerate():  # a pool does not wait for a thread that an interrupt finds at its start
        if thread.name.startswith("ThreadPoolExecutor"):
            _joined(thread)
    assert fake.asked.count("Fetch") <= stopped_at[0] + 1
    states = list(tmp_path.glob("*/o*/fetch.capture"))
    assert states
    for state in states:
        folder = state.parent
        kept, noted = log_of(folder), json.loads(state.read_text())
        assert (noted["total"], noted["size"]) == (len(kept), len(kept))
        assert fake.logs[folder.name.removesuffix("-0"), 0].content().startswith(kept)
