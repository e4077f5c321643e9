"""Nobody but this process reaches the embedded engine: its port, and its temporary files.

Held: once the port is closed, no connection is made, and one that another process made before is found in the kernel's
table, as long as its socket is there, also if it has ended. Not held: one that came before ours and was reset left no
trace. It had the milliseconds between the start of the listener and our connection.
"""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from txnlib.engine import embedded
from txnlib.engine.embedded import _private_folder
from txnlib.engine.guard import can_close, close_to_others
from txnlib.errors import EngineError

pytestmark = pytest.mark.skipif(not can_close(), reason="only Linux closes a listener while its connections go on")

#: Another process: connects, does what is to be done, says so, and waits for its end.
STRANGER = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
{does}
print(1, flush=True)
sys.stdin.read()
"""
LEAVES = "s.close()"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def stranger(port: int, host: str = "127.0.0.1", does: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-S", "-c", STRANGER.format(does=does), host, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    return process


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.3).close()
    except OSError:
        return True
    return False


def test_our_connection_goes_on_and_nobody_else_gets_one(listener):
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as ours, listener.accept()[0] as accepted:
        close_to_others(port)
        assert is_refused(port)
        ours.sendall(b"question")
        assert accepted.recv(8) == b"question"
        accepted.sendall(b"answer")
        assert ours.recv(6) == b"answer"


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("is_accepted", [True, False])
def test_who_connected_before_is_found(listener, host, is_accepted):
    port = listener.getsockname()[1]
    with stranger(port, host), socket.create_connection(("127.0.0.1", port)) as ours:
        accepted = [listener.accept()[0] for _ in range(2 * is_accepted)]
        with pytest.raises(EngineError, match=r"another process connected .*127\.0\.0\.1:"):
            close_to_others(port)
        for each in (ours, *accepted):
            each.close()


@pytest.mark.parametrize("is_accepted", [True, False])
def test_who_connected_before_and_left_is_found(listener, is_accepted):
    port = listener.getsockname()[1]
    with stranger(port, does=LEAVES) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    accepted = [listener.accept()[0]] if is_accepted else []
    for each in accepted:
        assert each.recv(1) == b""
        each.close()
    with (
        socket.create_connection(("127.0.0.1", port)),
        pytest.raises(EngineError, match="another process connected"),
    ):
        close_to_others(port)


def test_the_port_of_another_process_is_not_ours():
    with pytest.raises(EngineError, match="not that of a listener of this process"):
        close_to_others(1)


# ---- The engine


def test_while_the_engine_runs_its_port_is_closed_and_its_session_answers(engine):
    assert is_refused(engine._server.listening_address[1])
    assert engine.spark.sql("SELECT 1 AS one").collect()[0]["one"] == 1


def test_an_engine_that_does_not_start_leaves_nothing(engine, tmp_path, monkeypatch):
    ports = []

    def refuse(port: int) -> None:
        ports.append(port)
        raise EngineError("another process connected")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(embedded, "close_to_others", refuse)
    with pytest.raises(EngineError, match="another process connected"):
        embedded.start()
    assert list(tmp_path.iterdir()) == []
    assert is_refused(*ports)


#: What a process says of its engine: the folder, the rights of it and of its files, whether it is there, and whether
#: the port is closed, while the engine runs and after.
LIFE = """
import os, socket
from txnlib.engine.embedded import start
from tests.engine.test_guard import is_refused

engine = start(is_asked_for=True)
folder, port = engine._folder, engine._server.listening_address[1]
engine.spark.sql("SELECT 1").collect()
for close in (lambda: None, engine.close):
    close()
    print(folder.exists(), is_refused(port), oct(folder.stat().st_mode & 0o777) if folder.exists() else "")
"""


def test_after_its_end_nothing_listens_and_nothing_is_left(repository, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, "-c", LIFE], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["True True 0o700", "False True "], done.stderr
    assert list(tmp_path.glob("txnlib-*")) == []


KILLED = "from txnlib.engine.embedded import _private_folder; print(_private_folder()[0], flush=True); input()"


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_no_other(repository, tmp_path, monkeypatch):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        (left / "capture").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        own, first = _private_folder()
        assert left.exists(), "its process lives"
        other.send_signal(signal.SIGKILL)
        other.wait()
    next_one, second = _private_folder()
    assert [path.exists() for path in (left, own, next_one)] == [False, True, True]
    assert stat.S_IMODE(next_one.stat().st_mode) == 0o700
    for descriptor in (first, second):
        os.close(descriptor)
