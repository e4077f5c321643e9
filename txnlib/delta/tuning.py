"""How a session plans: for few rows or for many. Steps that want different settings take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from threading import Condition
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txnlib.spark.joins import BROADCAST_LIMIT, NEVER
from txnlib.spark.local_rows import ADAPTIVE, setting

CODEGEN: Final = "spark.sql.codegen.factoryMode"
#: Compiling a plan to Java takes longer than interpreting it over some 100,000 rows (66 s of CPU against 53 s for the
#: sample).
_INTERPRET: Final = {
    "spark.sql.codegen.wholeStage": "false",
    CODEGEN: "NO_CODEGEN",
    # Adaptive execution plans again after every stage, and every shuffle partition is a task.
    ADAPTIVE: "false",
    # Every query prints its plan for a web page. The short form names it only once.
    "spark.sql.ui.explainMode": "simple",
}


class Plans(Enum):
    """What a session is tuned for."""

    SMALL = "a capture whose tables all fit in the driver, each in one partition"
    FEW_ROWS = "few rows, made of batches that need more than one task"
    COMPILED = "few rows, found among many, or read of files in arrays"
    MANY_PARTITIONS = "few rows, of which too many are about partitions to send them to every task"
    MANY_ROWS = "rows that grow with the log"


_SETTINGS: Final[Mapping[Plans, Mapping[str, str]]] = {
    Plans.SMALL: {
        **_INTERPRET,
        "spark.sql.shuffle.partitions": "1",
        # A broadcast is a job of its own. Rows of one partition are joined where they are (`spark.joins`).
        BROADCAST_LIMIT: NEVER,
        "spark.sql.leafNodeDefaultParallelism": "1",
    },
    Plans.FEW_ROWS: {**_INTERPRET, "spark.sql.shuffle.partitions": "2"},
    # Interpreted, a look through 560,000 rows takes twice as long. And rows of arrays would be one kind of row too many
    # for the JVM's compiler: all later steps would take longer, the windows twice as long (2.5 million batches).
    Plans.COMPILED: {"spark.sql.shuffle.partitions": "2", ADAPTIVE: "false"},
    # The heap holds a broadcast until its query ends, and a query may have 20 of them. What is sorted can spill to
    # disk.
    Plans.MANY_PARTITIONS: {**_INTERPRET, "spark.sql.shuffle.partitions": "2", BROADCAST_LIMIT: NEVER},
    Plans.MANY_ROWS: {"spark.sql.codegen.wholeStage": "true", CODEGEN: "FALLBACK", ADAPTIVE: "true"},
}
#: A run writes only its own partition, in one or two kinds of files, so rows need not be sorted by partition first. The
#: sort takes half of a large write.
WRITE: Final = {
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # Spark's default, INT96, stores nanoseconds, and other readers wrap values beyond their range (years after 2262).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_TUNED: Final = sorted({*WRITE}.union(*_SETTINGS.values()))


@contextmanager
def settings_kept(spark: SparkSession) -> Iterator[None]:
    """Restores the settings that a `Tuning` changes, for a session that is shared with other code."""
    before = _settings(spark)
    try:
        yield
    finally:
        _set(spark, before)


class Tuning:
    """The settings of a session whose steps run side by side.

    Settings belong to the session, and count when a query is planned. So steps that want the same settings run
    together, and others wait for them, in order.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = _settings(spark)
        self._changed = Condition()
        self._waiting: deque[object] = deque()
        self._now: Plans | None = None
        self._steps = 0

    @contextmanager
    def of(self, plans: Plans) -> Iterator[None]:
        """The settings for a step, for as long as it runs."""
        place = object()
        with self._changed:
            self._waiting.append(place)
            self._changed.wait_for(lambda: self._waiting[0] is place and (self._steps == 0 or self._now is plans))
            self._waiting.popleft()
            self.tune(plans)
            self._steps += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._steps -= 1
                self._changed.notify_all()

    def tune(self, plans: Plans) -> None:
        """Changes the settings now."""
        if self._now is not plans:
            _set(self._spark, {**self._before, **_SETTINGS[plans], **WRITE})
            self._now = plans


def _settings(spark: SparkSession) -> dict[str, str | None]:
    return {key: setting(spark, key) for key in _TUNED}


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        # A shared server may refuse settings that are not per session. The audit is then slower, with the same result.
        with suppress(PySparkException):
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
