"""Nobody but this process reaches the embedded engine: its port, and its temporary files.

Held from the moment at which it would listen: no port is open, what another process sends is not carried out, and no
connection of others keeps the engine from starting or from ending.
"""

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest

from tests.support.daemons import wait_until
from tests.support.neighbour import executes, neighbour
from txnlib.engine import embedded
from txnlib.engine.embedded import _private_folder
from txnlib.engine.guard import HOST, OpenPortError, has_neighbours, start_closed
from txnlib.engine.held_calls import can_hold
from txnlib.errors import EngineError

pytestmark = pytest.mark.skipif(not can_hold(), reason="only Linux holds calls")

#: Another process: connects to a file, says so, and says what comes.
STRANGER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as each:
    each.connect(sys.argv[1])
    print("connected", flush=True)
    print(each.recv(1), flush=True)
"""


class Server:
    """Listens and accepts as the engine does: in a thread that it starts."""

    def __init__(self) -> None:
        self.accepted: SimpleQueue[socket.socket | OSError] = SimpleQueue()
        self.listener = socket.socket()

    def start(self) -> int:
        self.listener.bind((HOST, 0))
        self.listener.listen()
        Thread(target=self._accept, daemon=True).start()
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        """Not by Python's `accept`, which remembers a call that failed for all of the process."""
        libc, address, length = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(128), ctypes.c_int(128)
        for _ in range(2):
            found = libc.accept4(self.listener.fileno(), address, ctypes.byref(length), socket.SOCK_CLOEXEC)
            self.accepted.put(socket.socket(fileno=found) if found >= 0 else OSError(ctypes.get_errno()))


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    with found.listener:
        yield found


def is_refused(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=0.3).close()
    except OSError:
        return True
    return False


def test_one_connection_comes_in_and_no_port_is_open(server, tmp_path):
    with closing(start_closed(server.start, tmp_path)) as door:
        port = server.listener.getsockname()[1]
        assert is_refused(port)
        with socket.socket(socket.AF_UNIX) as ours:
            ours.connect(door.path)
            door.let_in(10)
            accepted = server.accepted.get(timeout=10)
            assert isinstance(accepted, socket.socket)
            with accepted:
                assert not os.get_blocking(accepted.fileno())
                ours.sendall(b"question")
                assert accepted.recv(8) == b"question"
                accepted.sendall(b"answer")
                assert ours.recv(6) == b"answer"
        assert is_refused(port)
        with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
            late.connect(door.path)
        assert server.accepted.empty()
    assert isinstance(server.accepted.get(timeout=10), OSError), "it waits no longer"


def test_another_process_is_sent_away_at_the_door(server, tmp_path):
    with closing(start_closed(server.start, tmp_path)) as door, socket.socket(socket.AF_UNIX) as ours:
        file = next(path for path in tmp_path.iterdir() if path.is_socket())
        command = [sys.executable, "-S", "-c", STRANGER, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == "connected\n"
            ours.connect(door.path)
            door.let_in(10)
            assert stranger.stdout.read() == "b''\n"
        ours.sendall(b"question")
        accepted = server.accepted.get(timeout=10)
        assert isinstance(accepted, socket.socket)
        with accepted:
            assert accepted.recv(8) == b"question"


def test_without_a_connection_of_its_own_it_ends_in_time(server, tmp_path):
    with closing(start_closed(server.start, tmp_path)) as door, pytest.raises(TimeoutError):
        door.let_in(0.1)


def test_a_server_that_accepts_nobody_is_waited_for_in_vain(tmp_path):
    with closing(start_closed(lambda: 1, tmp_path)) as door, socket.socket(socket.AF_UNIX) as ours:
        ours.connect(door.path)
        with pytest.raises(TimeoutError):
            door.let_in(0.1)


def test_a_port_that_is_open_all_the_same_is_noticed(tmp_path):
    with socket.create_server((HOST, 0)) as elsewhere, pytest.raises(OpenPortError, match="in another thread"):
        start_closed(lambda: int(elsewhere.getsockname()[1]), tmp_path)


def test_calls_of_other_threads_go_on(server, tmp_path):
    with (
        closing(start_closed(server.start, tmp_path)),
        socket.create_server((HOST, 0)) as other,
        socket.create_connection(other.getsockname()) as client,
        other.accept()[0] as accepted,
    ):
        client.sendall(b"x")
        assert accepted.recv(1) == b"x"


# ---- The engine

#: Starts engines closed, or a server that is open, and asks each.
STARTS = """
import sys
from pysail.spark import SparkConnectServer
from txnlib.engine.embedded import start

if sys.argv[1] == "open":
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    sys.stdin.read()
for _ in range(3 * (sys.argv[1] == "closed")):
    engine = start(is_asked_for=True)
    print(engine.spark.sql("SELECT 1 AS one").collect()[0]["one"], flush=True)
    engine.close()
"""


@pytest.fixture
def started(repository, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    program = tmp_path / "starts.py"
    program.write_text(STARTS)

    def run(how: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(program), how]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    return run


def test_what_a_neighbour_sends_from_listen_on_is_not_carried_out(spark, started, tmp_path):
    marker = tmp_path / "ran"
    with neighbour(executes(spark, marker), tmp_path) as other, started("closed") as engines:
        other.waits_for(engines.pid)
        said, problems = engines.communicate(timeout=120)
    assert said.splitlines() == ["1", "1", "1"], problems
    assert not marker.exists()


def test_the_same_request_runs_where_a_port_is_open(spark, started, tmp_path):
    marker = tmp_path / "ran"
    with neighbour(executes(spark, marker), tmp_path) as other, started("open") as server:
        other.waits_for(server.pid)
        wait_until(marker.exists, "the neighbour's code to run")
        server.kill()


def test_ended_connections_of_earlier_servers_keep_no_engine_from_starting(started):
    """Thousands of them are in the kernel's table, in TIME_WAIT."""
    for _ in range(20):
        with socket.create_server((HOST, 0), backlog=256) as earlier:
            for _ in range(200):
                with socket.create_connection(earlier.getsockname()) as client, earlier.accept()[0]:
                    client.shutdown(socket.SHUT_WR)
    with started("closed") as engines:
        said, problems = engines.communicate(timeout=120)
    assert said.splitlines() == ["1", "1", "1"], problems


def test_while_the_engine_runs_its_port_is_closed_and_its_session_answers(engine):
    assert is_refused(engine._server.sail.listening_address[1])
    assert engine.spark.sql("SELECT 1 AS one").collect()[0]["one"] == 1


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No files of engines but those of a test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("failures", [2, 3])
def test_what_ends_one_start_does_not_end_the_next(alone, monkeypatch, failures):
    left = list(range(failures))

    def fail(start, folder):
        found = start_closed(start, folder)
        if left:
            left.pop()
            found.close()
            raise OSError("Address already in use")
        return found

    monkeypatch.setattr(embedded, "start_closed", fail)
    if failures < 3:
        embedded.start().close()
    else:
        with pytest.raises(EngineError, match="it does not start: Address already in use"):
            embedded.start()
    assert (left, list(alone.iterdir())) == ([], [])


@pytest.mark.parametrize("is_asked_for", [False, True])
@pytest.mark.parametrize("is_crowded", [False, True])
def test_where_no_port_can_be_closed_others_are_a_reason_to_refuse(alone, monkeypatch, is_asked_for, is_crowded):
    monkeypatch.setattr("txnlib.engine.guard.can_hold", lambda: False)
    monkeypatch.setattr(embedded, "has_neighbours", lambda: is_crowded)
    if is_crowded and not is_asked_for:
        with pytest.raises(EngineError, match=r"cannot be closed to other users.*engine=.embedded"):
            embedded.start(is_asked_for=is_asked_for)
    else:
        found = embedded.start(is_asked_for=is_asked_for)
        assert found.spark.sql("SELECT 1 AS one").collect()[0]["one"] == 1
        found.close()
    assert list(alone.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts a process of another user")
def test_a_process_of_another_user_is_a_neighbour(tmp_path):
    with neighbour(b"", tmp_path, user=65_533) as other:
        other.waits_for("nobody")
        wait_until(has_neighbours, "it to become another user")


#: What a process says of two engines, one after the other: whether each keeps its files in its own folder; whether the
#: folder is there and the port is closed, and the rights of the folder, while the engine runs and after.
LIFE = """
import os
from txnlib.engine.embedded import start
from tests.engine.test_guard import is_refused

for _ in range(2):
    engine = start(is_asked_for=True)
    folder, port = engine._folder, engine._server.sail.listening_address[1]
    engine.spark.sql("SELECT 1").collect()
    print(str(folder) in os.environ["SAIL_RUNTIME__TEMPORARY_FILES__PATHS"])
    for close in (lambda: None, engine.close):
        close()
        print(folder.exists(), is_refused(port), oct(folder.stat().st_mode & 0o777) if folder.exists() else "")
"""


def test_an_engine_has_a_folder_of_its_own_and_after_its_end_nothing_listens_and_nothing_is_left(repository, tmp_path):
    here = {name: value for name, value in os.environ.items() if not name.startswith("SAIL_")}
    environment = {**here, "TMPDIR": str(tmp_path), "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, "-c", LIFE], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["True", "True True 0o700", "False True "] * 2, done.stderr
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
