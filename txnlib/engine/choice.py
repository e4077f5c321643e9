"""Which engine an audit runs on. Imports nothing, so that a wrong option is told at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from txnlib.errors import MissingExtraError, UsageError

EMBEDDED: Final = "embedded"
SPARK: Final = "spark"
ENGINES: Final = (EMBEDDED, SPARK)
#: Environment variables that are set where Spark is to run: by `spark-submit`, a cluster, a server, Databricks.
_OF_SPARK: Final = ("PYSPARK_GATEWAY_PORT", "SPARK_MASTER", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION")
#: Engine -> the extra of txnlib that brings it.
_EXTRAS: Final = {EMBEDDED: "local", SPARK: "spark"}
#: Engine -> its product, and the packages that bring it.
_PRODUCTS: Final = {EMBEDDED: ("Sail", ("pysail",)), SPARK: ("Spark", ("pyspark", "pyspark-client"))}


def choose(asked: str | None, schema: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The name of the engine: as asked for, else Spark if the environment names one, else the embedded engine.

    Raises UsageError for a catalog on the embedded engine.
    """
    if asked == EMBEDDED and schema is not None:
        raise UsageError("--schema needs Spark, which has the catalog: --engine spark")
    if asked is not None:
        return asked
    is_submitted = "--master" in environment.get("PYSPARK_SUBMIT_ARGS", "")
    is_named = is_submitted or any(environment.get(name) for name in _OF_SPARK)
    return SPARK if schema is not None or is_named or _has_session() else EMBEDDED


def missing_extra(what: str, error: ModuleNotFoundError, schema: str | None = None) -> MissingExtraError:
    """The error if a module of the chosen engine is missing: it says what to install. `what`: what needs the module."""
    return MissingExtraError(what, (error.name or "").partition(".")[0], _EXTRAS[choose(None, schema)])


@contextmanager
def program_with_a_file() -> Iterator[None]:
    """Gives the program of `python -c` a file, as others have one, while PySpark is imported.

    It takes a program without one for its own doctests, looks for an installed Spark, and without one ends the process.
    """
    program: Any = sys.modules["__main__"]
    if program.__spec__ is not None or hasattr(program, "__file__"):
        yield
        return
    program.__file__ = "-c"
    try:
        yield
    finally:
        del program.__file__


def _has_session() -> bool:
    """Whether there is a session of Spark, as in a notebook."""
    pyspark: Any = sys.modules.get("pyspark.sql")
    with suppress(RuntimeError), program_with_a_file():  # there is none
        return pyspark is not None and not getattr(pyspark.SparkSession.active(), "is_embedded", False)
    return False


def label(engine: str) -> str:
    """An engine and its version, for people: `embedded (Sail 0.7.2)`."""
    product, packages = _PRODUCTS[engine]
    for package in packages:
        try:
            return f"{engine} ({product} {version(package)})"
        except PackageNotFoundError:
            continue
    return engine
