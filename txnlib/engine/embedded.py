"""The embedded engine: a Spark Connect server inside this process, without a JVM.

Sail (`pysail`) plans and carries out what PySpark asks for. It would listen on the loopback; `guard` sees to it that
it hears this process only. Python functions of a query run in this process.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Final

from txnlib.core.display import printable, size
from txnlib.engine.delta_rs import DeltaRsTables
from txnlib.engine.guard import HOST, Door, OpenPortError, has_neighbours, start_closed
from txnlib.engine.memory import NEEDED_ADDRESSES, pool_bytes, scarce_addresses
from txnlib.engine.pool_source import PoolSource
from txnlib.engine.store import Store
from txnlib.errors import EngineError, MissingExtraError, UsageError
from txnlib.readers.capture import Capture
from txnlib.spark.capture_source import CaptureSource
from txnlib.store_options import store_options

#: The engine's own settings, by environment. They may change between its versions, so pyproject.toml pins it.
SETTINGS: Final = {
    "RUST_LOG": "error",  # else a line on stderr for each hint that it does not know
    "SAIL_MODE": "local",
    "SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair",
    # The session of a step that takes long in Python, or of a notebook, would end after some minutes.
    "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(7 * 24 * 3600),
    # Python's tracker of resources would complain on stderr of a program that Ctrl-C ended.
    "PYTHONWARNINGS": "ignore:resource_tracker",
}
#: Where the engine keeps what does not fit into memory.
_TEMPORARY: Final = "SAIL_RUNTIME__TEMPORARY_FILES__PATHS"
#: How many bytes of rows it holds at a time, shared by what a query does: beyond that, sorts and aggregates use files.
_POOL: Final = "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE"
_CHANNEL: Final = (
    ("grpc.default_authority", "localhost"),  # of a file, it would be a path, which the engine refuses
    # gRPC ends a connection after 30 minutes without a call, and there is no other.
    ("grpc.client_idle_timeout_ms", (1 << 31) - 1),
    # Rows stay on this machine: to compress them takes longer than all else that is done to them.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    # A message is a batch of rows, each with all batches of its run.
    ("grpc.max_receive_message_length", -1),
)
_OF_SESSION: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Else PySpark looks for the caller of each function that builds a plan, which takes a tenth of a small audit.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
#: Seconds to wait for our connection, and how often to try.
_PATIENCE: Final = 20
_ATTEMPTS: Final = 3
_FOLDERS: Final = "txnlib-engine-"
#: Paths that the engine reads as they are.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+-]*")
#: What delta-rs takes for something else in a path, or refuses (deltalake 1.6).
_NOT_IN_PATHS: Final = re.compile(r"[\x00-\x1f\x7f\[\]\\^|]|%[0-9A-Fa-f]{2}")
#: Schemes that delta-rs does not write to.
_NOT_OURS: Final = ("hdfs:", "viewfs:", "dbfs:")


@dataclass(slots=True)
class EmbeddedEngine:
    """A running engine. `close` ends it."""

    spark: Any
    _server: Server
    _folder: Path
    _lock: int

    name = "embedded"
    steps_at_once = 2  # to plan a query takes one core

    def store(self, output: str | None, schema: str | None) -> Store:
        """The tables under a local folder or the URI of an object store. Raises UsageError for any other place."""
        if schema is not None or str(output).startswith(_NOT_OURS):
            raise UsageError(f"the embedded engine does not write to {schema or output}: --engine spark")
        if odd := None if "://" in str(output) else _NOT_IN_PATHS.search(output or ""):
            raise UsageError(
                f"--output {printable(str(output))}: delta-rs reads another path where there is {printable(odd[0])}:"
                " take a folder without it"
            )
        os.environ.update(store_options(output or ""))  # the engine hears of a store in no other way
        return Store(self.spark, DeltaRsTables(self.spark, output or "", self._readable(output or "")), output)

    def _readable(self, output: str) -> str:
        """A path by which the engine finds tables. It takes no path with a space, a percent sign or an umlaut (Sail
        0.7.2: "No commit files found"), so a link in the private folder stands for such a one."""
        if "://" in output or _PLAIN.fullmatch(output):
            return output
        link = self._folder / f"tables-{len(list(self._folder.glob('tables-*')))}"
        link.symlink_to(output, target_is_directory=True)
        return str(link)

    def source(self, capture: Capture) -> CaptureSource:
        return PoolSource(self.spark, capture, folder=self._folder)

    def close(self) -> None:
        """Ends the session, then the server, and removes their files."""
        global _RUNNING
        _RUNNING = None
        self.spark.release_session_on_close = False  # to ask a server that hears nobody any more takes minutes
        with suppress(Exception):
            self.spark.stop()
        self._server.stop()
        _forget(self._folder, self._lock)


def start(*, is_asked_for: bool = False) -> EmbeddedEngine:
    """Starts the engine. Raises EngineError if it does not start, or if its port cannot be closed to other users.

    `is_asked_for`: whether somebody named the engine, who then accepts an open port where none can be closed.
    """
    if (addresses := scarce_addresses()) is not None:
        raise EngineError(
            f"it needs {size(NEEDED_ADDRESSES)} of address space, and ulimit -v allows {size(addresses)}: raise that"
        )
    try:
        import grpc  # noqa: F401
        import pysail.spark  # noqa: F401
        import pyspark.sql.connect.session  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the embedded engine", str(error.name), "local") from error

    folder, lock = _private_folder()
    try:
        _set_up(folder)
        try:
            server = _connected(folder)
        except OpenPortError as error:
            if not is_asked_for and has_neighbours():
                raise EngineError(
                    "on this system, its port cannot be closed to other users, who could run code as you while an audit"
                    f" runs ({error}). Where nobody else uses this machine: --engine embedded"
                ) from error
            server = _connected(None)
        try:
            spark = _session(server.channel, folder)
        except BaseException:
            server.stop()
            raise
    except BaseException:
        _forget(folder, lock)
        raise
    return EmbeddedEngine(spark, server, folder, lock)


@dataclass(slots=True)
class Server:
    """Sail, and our connection to it. `door`: the only way to it; None where its port is open."""

    sail: Any
    door: Door | None = None
    channel: Any = None

    def stop(self) -> None:
        """Ends both."""
        if self.channel is not None:
            self.channel.close()
        if self.door is not None:
            self.door.close()
        with suppress(RuntimeError):  # it has not started
            self.sail.stop()


def _connected(folder: Path | None) -> Server:
    """A server with our connection to it. What may have happened to one only is no reason to give up.

    `folder`: a private one, by which it is reached; None for an open port. Raises EngineError and OpenPortError.
    """
    from pysail.spark import SparkConnectServer

    problem: OSError | None = None
    for _ in range(_ATTEMPTS):
        server = Server(SparkConnectServer(HOST, 0))
        try:
            _connect(server, folder)
            return server
        except BaseException as error:
            server.stop()
            if not isinstance(error, OSError):
                raise
            problem = error
    raise EngineError(f"it does not start: {problem}") from problem


def _connect(server: Server, folder: Path | None) -> None:
    """Starts a server and connects to it. Raises OSError, TimeoutError included, and OpenPortError."""
    import grpc

    def start_sail() -> int:
        server.sail.start(background=True)
        return int(server.sail.listening_address[1])

    if folder is None:
        target = f"{HOST}:{start_sail()}"
    else:
        server.door = start_closed(start_sail, folder)
        target = f"unix:{server.door.path}"
    server.channel = grpc.insecure_channel(target, options=[*_CHANNEL, *_builder(None)._channel_options])
    ready = grpc.channel_ready_future(server.channel)  # connects
    if server.door is not None:
        server.door.let_in(_PATIENCE)
    try:
        ready.result(_PATIENCE)
    except grpc.FutureTimeoutError as error:
        raise TimeoutError(f"it does not answer in {_PATIENCE} s") from error


def _session(channel: Any, folder: Path) -> Any:
    """The session of PySpark over a connection. `folder`: where it may keep rows."""
    from pyspark.sql.connect.session import SparkSession

    spark = SparkSession.builder.channelBuilder(_builder(channel)).create()
    for key, value in _OF_SESSION.items():
        spark.conf.set(key, value)
    spark.is_embedded, spark.private_folder = True, folder  # type: ignore[attr-defined]
    return spark


def _builder(channel: Any) -> Any:
    """What PySpark asks for a connection: it returns `channel`, which is already connected."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class OurChannel(DefaultChannelBuilder):
        def toChannel(self) -> Any:
            return channel

    return OurChannel(f"sc://{HOST}")


_RUNNING: EmbeddedEngine | None = None


def running(*, is_asked_for: bool = False) -> EmbeddedEngine:
    """The engine of this process, which starts it once and ends it at its own end. Raises as `start` does."""
    global _RUNNING
    if _RUNNING is None:
        _RUNNING = start(is_asked_for=is_asked_for)
        atexit.register(_close)
    return _RUNNING


def remove_files() -> None:
    """Removes the files of this process's engine, for a process that ends without waiting for the engine."""
    for _ in range(3):  # another thread may still write there
        if _RUNNING is not None and _RUNNING._folder.exists():
            shutil.rmtree(_RUNNING._folder, ignore_errors=True)


def _close() -> None:
    if _RUNNING is not None:
        _RUNNING.close()


def _private_folder() -> tuple[Path, int]:
    """A folder that only this user can read, with a lock that is held while this process lives.

    Folders of processes that ended without removing theirs are removed first.
    """
    root = Path(tempfile.gettempdir())
    for left in root.glob(f"{_FOLDERS}*"):
        with suppress(OSError):
            descriptor = os.open(left / "lock", os.O_RDWR | os.O_NOFOLLOW)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
    descriptor = os.open(folder / "new", os.O_RDWR | os.O_CREAT, 0o600)
    flock(descriptor, LOCK_EX | LOCK_NB)
    os.rename(folder / "new", folder / "lock")  # nobody finds it before it is locked
    return folder, descriptor


def _forget(folder: Path, lock: int) -> None:
    """Removes the private folder. The next engine has another one, where it keeps its files."""
    if os.environ.get(_TEMPORARY) == _setting(folder):
        del os.environ[_TEMPORARY]
        os.environ.pop(_POOL, None)  # the next engine takes what is free then
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _setting(folder: Path) -> str:
    return f'["{folder}"]'


def _set_up(folder: Path) -> None:
    """The environment that the engine reads when it starts. What the user has set stays."""
    given = {**SETTINGS, _TEMPORARY: _setting(folder), _POOL: str(pool_bytes())}
    for key, value in given.items():
        os.environ.setdefault(key, value)
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # the functions of pyspark.sql build plans of Spark Connect
