"""One Spark session for all tests, and the captures."""

from __future__ import annotations

import os
import re
import signal
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from tests.support import shared_modules

os.environ["TZ"] = "UTC"
time.tzset()
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Spark's workers take PATH's python3 unless told otherwise.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


# What a script starts in the background ignores Ctrl-C, and so would every program that a test stops by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, and no database on disk; `--hypothesis-profile=exhaustive` takes new ones, and more.
hypothesis_settings.register_profile("deterministic", derandomize=True, database=None, max_examples=60, deadline=None)
hypothesis_settings.register_profile("exhaustive", database=None, max_examples=5_000, deadline=None)
hypothesis_settings.load_profile("deterministic")
# A query takes Spark seconds. That its windows remember what the core remembers is the embedded engine's to show.
hypothesis_settings.register_profile("on Spark", hypothesis_settings.get_profile("deterministic"), max_examples=2)

#: A cluster of processes, a real broker, audits killed in the middle: minutes, which CI does not have.
SLOW = (
    "tests/cluster/",
    "tests/scripts/test_capture_of_a_broker.py",
    "tests/jobs/test_kills.py",
)

#: In a module that has something for Spark.
OF_SPARK = re.compile(r"\bmark\.(classic|both)\b")


def pytest_addoption(parser: pytest.Parser) -> None:
    shared_modules.pytest_addoption(parser)
    parser.addoption("--engine", choices=("embedded", "spark"), default="embedded", help="the engine of `spark`")
    parser.addoption("--renew", action="store_true", help="write the golden files (screens) anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.engine == "spark" and not config.option.hypothesis_profile:
        hypothesis_settings.load_profile("on Spark")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """On Spark, leaves out the modules that have nothing for it: to import all takes ten seconds."""
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if config.option.engine == "embedded" or not is_module:
        return None
    return True if not OF_SPARK.search(collection_path.read_text()) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what is too slow for CI (run-tests.sh), and takes the tests of the chosen engine.

    One process has one kind of PySpark. On Spark, only what it alone has (`classic`) and laws of both engines (`both`).
    """
    for item in items:
        if any(part in item.nodeid for part in SLOW):
            item.add_marker(pytest.mark.slow)
    is_embedded = config.option.engine == "embedded"
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        is_kept = not item.get_closest_marker("classic") if is_embedded else _is_of_spark(item)
        (kept if is_kept else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


pytest_runtestloop = shared_modules.pytest_runtestloop


def _is_of_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("classic") is not None or item.get_closest_marker("both") is not None


def _remember_classes() -> None:
    """Makes py4j remember the JVM's classes and functions, which it looks up at every use: a third of the time to build
    a plan."""
    from py4j.java_gateway import JavaClass, JavaMember, JVMView

    def remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def get(self: Any, name: str) -> Any:
            known = self.__dict__.setdefault("_remembered", {})
            if name in known:
                return known[name]
            found = look_up(self, name)
            if isinstance(found, JavaClass | JavaMember):
                known[name] = found
            return found

        return get

    for cls in (JVMView, JavaClass):
        cls.__getattr__ = remembering(cls.__getattr__)


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine that --engine names."""
    if request.config.option.engine == "embedded":
        from txnlib.engine.embedded import running

        found = running(is_asked_for=True)
        yield found
        found.close()
        return
    from txnlib.engine.spark import SparkEngine

    with _classic_session(tmp_path_factory):
        yield SparkEngine()


@pytest.fixture(scope="session")
def spark(engine: Any) -> Any:
    """The session of the engine."""
    return engine.spark


@contextmanager
def _classic_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A small local session with Delta; each setting with its reason."""
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    jars = os.environ.get("TXNLIB_DELTA_JARS", "")
    assert jars, "TXNLIB_DELTA_JARS is not set: run the tests by ./run-tests.sh, which brings Delta's jars"
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",  # the default of 50 tasks per table costs seconds
        "spark.sql.shuffle.partitions": "1",  # frames are small: every further task is overhead
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",  # plans for tiny frames cost more than they save
        "spark.sql.codegen.wholeStage": "false",  # compiling a plan takes longer than running it over a few rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.sql.dataFrameDebugging.enabled": (
            "false"
        ),  # notes the caller's line for every column: a sixth of the time
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # The optimising compiler would take two fifths of the CPU; what it makes is not run often enough. Without room
        # for classes from the start, each time they need more is a full collection: a tenth of the time. So much room
        # for what is young makes a quarter of the collections, which take half as long: a twentieth of the time.
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
            f"-XX:MetaspaceSize=384m -Xms1600m -Xmn1g -Dderby.system.home={scratch}"
        ),
        "spark.driver.memory": "4g",
    }
    _remember_classes()
    builder = SparkSession.builder.master("local[2]").appName("txnlib-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def notebook_of_the_audit(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """audit_a_capture.ipynb after its last cell, run where it lies: `found` and `patient`, of the sample capture."""
    from tests.support.notebooks import NOTEBOOKS, run

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOKS)
        return run("audit_a_capture.ipynb", OUTPUT=str(tmp_path_factory.mktemp("audit") / "out" / "quickstart"))


@pytest.fixture(scope="session")
def audited_in_a_notebook(notebook_of_the_audit: Any) -> dict[str, Any]:
    return dict(notebook_of_the_audit.known)


@pytest.fixture
def assert_as_read(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Asserts that a text is as somebody read it last, in `screens` beside the test. `pytest FILE --renew` writes it
    anew, and the difference is read."""

    def check(name: str, told: str) -> None:
        file = request.path.with_name("screens") / f"{name}.txt"
        if request.config.getoption("--renew"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(told)
        assert told == file.read_text()

    return check


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the project."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """Copies of real captures, unpacked from tests/captures (see the README there)."""
    folder = tmp_path_factory.mktemp("captures")
    with tarfile.open(repository / "tests" / "captures" / "captures.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(folder)
    return folder
