"""Processes of Spark for tests: master, worker, Connect server.

What is waited for is what a process says or does, never a time. A process is its own group, so that killing it takes
along the executors and Python workers it has started: as when a machine dies.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.audits import printed
from txnlib.ask.delta_rows import open_tables, runs
from txnlib.engine.spark import DELTA
from txnlib.spark.schemas import TABLES

#: Columns that say which audit has read what.
OF_READING: Final = ("part", "parts")
_CONNECT_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: Beyond this nothing is still on its way, on however busy a machine.
PATIENCE_S: Final = 300
#: Where a daemon says that it is there.
_LOGGED: Final = """
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %m%n%ex
logger.deploy.name = org.apache.spark.deploy
logger.deploy.level = info
logger.connect.name = org.apache.spark.sql.connect.service
logger.connect.level = info
"""
#: Run by Python as it starts: takes away what `pip install --editable` gives, whichever way it does.
_WITHOUT_TXNLIB: Final = """
import os
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
sys.path[:] = [folder for folder in sys.path if not os.path.isdir(os.path.join(folder, "txnlib"))]
"""


def wait_until(found: Callable[[], Any], what: str) -> Any:
    """What `found` returns once that is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return value


def bare_environment() -> dict[str, str]:
    """The environment without what the tests' own session needs."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }


@dataclass
class Daemon:
    """A running process of Spark, with what it has said so far."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> str:
        """The first group of the first match in its log, once there is one."""

        def look() -> re.Match[str] | None:
            text = self.log.read_text(errors="replace")
            assert self.process.poll() is None, text
            return re.search(pattern, text)

        return str(wait_until(look, f"{pattern} in {self.log}")[1])

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Daemons:
    """Starts processes that share a folder, and kills them at the end. Their Python has no txnlib but one shipped to
    it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[Daemon] = []
        (folder / "log4j2.properties").write_text(_LOGGED)
        (folder / "python").mkdir()
        (folder / "python" / "sitecustomize.py").write_text(_WITHOUT_TXNLIB)

    def start(self, name: str, *argv: str) -> Daemon:
        """A program of Spark's `bin` with its arguments."""
        home = Path(os.environ["SPARK_HOME"])
        environment = {
            **bare_environment(), "SPARK_HOME": str(home), "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "1g",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
            "SPARK_WORKER_DIR": str(self.folder / name), "PYSPARK_PYTHON": os.environ["PYSPARK_PYTHON"],
            "PYTHONPATH": str(self.folder / "python"),
        }  # fmt: skip
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [home / "bin" / argv[0], *argv[1:]], env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.running.append(Daemon(process, log))
        return self.running[-1]

    def connect_server(self) -> str:
        """Where a new server of Spark Connect is to be reached, which has Delta's settings and no others of ours
        (docs/operations.md)."""
        server = self.start(
            "connect",
            *["spark-submit", "--master", "local[2]", "--jars", os.environ["TXNLIB_DELTA_JARS"]],
            *(part for setting in DELTA.items() for part in ("--conf", "=".join(setting))),
            *["--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.connect.grpc.binding.port=0"],
            *["--class", _CONNECT_SERVER, "spark-internal"],
        )
        return f"sc://127.0.0.1:{server.said('server started at: .*:([0-9]+)')}"

    def two_workers(self) -> tuple[str, list[Daemon]]:
        """Where a new standalone cluster is to be reached, and its workers, of a core each."""
        on_loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = self.start("master", "spark-class", "org.apache.spark.deploy.master.Master", *on_loopback)
        url = master.said("(spark://127.0.0.1:[0-9]+)")
        resources = ["--cores", "1", "--memory", "1g"]
        workers = [
            self.start(name, "spark-class", "org.apache.spark.deploy.worker.Worker", *on_loopback, *resources, url)
            for name in ("worker-1", "worker-2")
        ]
        for worker in workers:
            worker.said("(Successfully registered with master)")
        return url, workers


@contextmanager
def daemons(folder: Path) -> Iterator[Daemons]:
    """Daemons that are gone at the end, however it comes."""
    started = Daemons(folder)
    try:
        yield started
    finally:
        for daemon in started.running:
            daemon.kill()


#: What an audit on a small machine hands over to executors, which are quick to start then and find a lost one soon.
LIGHTLY: Final = (
    *(
        "--conf",
        "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    ),
    *("--conf", "spark.shuffle.io.retryWait=100ms"),
)


def audited(repository: Path, *argv: str, **environment: str) -> tuple[str, str]:
    """What an audit said, its report and its progress, once it has ended well."""
    with submitted(repository, "audit", *argv, **environment) as audit:
        printed, progress = audit.communicate()
    assert audit.returncode == 0, progress
    assert "Exception" not in progress
    return printed, progress


@contextmanager
def submitted(repository: Path, *argv: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`./spark-submit.sh` with its arguments, as a user starts it; gone at the end."""
    process = subprocess.Popen(
        [repository / "spark-submit.sh", *argv], env={**bare_environment(), **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def assert_same_tables(out: Path | str, expected: Path) -> None:
    """Both folders, or URIs, hold Delta tables with the same columns and the same rows for each run, read without
    Spark.

    Who read what may differ.
    """
    made, wanted = open_tables(str(out)), open_tables(str(expected))
    for name in TABLES.keys() - {"audit_runs"}:
        stored = [table for tables in (made, wanted) if (table := tables._found(name)) is not None]
        assert len({table.schema().to_json() for table in stored}) <= 1, name
        columns = ["run_id", *(column for column in TABLES[name].names if column not in OF_READING)]
        assert printed(made.rows(name, columns)) == printed(wanted.rows(name, columns)), name
    assert {run["status"] for run in runs(made)} == {"DONE"}
