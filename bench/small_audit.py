"""1. Small audits: the sample, a night after it, and 1,000 batches, next to a bare session and to trivial tables by
Spark.

eval "$(./bootstrap.sh spark)" && PYTHONPATH=. .venv-spark/bin/python bench/small_audit.py [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from generate import generate
from processes import ROOT, Watched, spark_python, watched
from ratio_table import Ratio, Table
from whole_audits import audit

SAMPLE, FLOOR = ROOT / "examples" / "quickstart" / "brokers", ROOT / "bench" / "trivial_tables.py"
#: A JVM for little work.
LIGHT = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:NewSize=384m -XX:MetaspaceSize=192m"
)
LATER = "2099-01-01T00:00:00Z"
FEW = 1_000
RUNS, TABLES = 3, 25
MOST, MOST_OVER_START, MOST_CPU_SECONDS = 0.7, 2, 35
#: The tables that grow with the log, and the queries that each of them may take.
OF_LOG, QUERIES_OF_TABLE = 14, 2
ABOUT = f"""Seconds from start to end, JVM included, of an audit of 0.2 MiB, of a night after it without news, and of an
audit of {FEW:,} batches of 500 bytes; beside a session that writes {TABLES} Delta tables of one row, and one that only
starts. "All cores" are CPU seconds. Medians of {RUNS}. The last line counts what Spark carries out for the sample,
except that it names frames, beside {QUERIES_OF_TABLE} queries for each of the {OF_LOG} tables that grow with the
log."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench/small_audit.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each (default: {RUNS})")
    result = measure(parser.parse_args().runs)
    print(f"\n{result.title}\n\n{result.text()}\n\n{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")


def measure(runs: int = RUNS) -> Table:
    """The table. What the audits write is removed."""
    table = _table([list(taken) for taken in zip(*[_measured() for _ in range(runs)], strict=True)])
    return replace(
        table, ratios=[*table.ratios, Ratio("queries of the sample", queries(), OF_LOG * QUERIES_OF_TABLE, at_most=1)]
    )


def queries() -> int:
    """The number of queries that an audit of the sample carries out, by Spark's event log."""
    with TemporaryDirectory(prefix="txnlib-bench-") as name:
        logs, out = Path(name, "events"), str(Path(name, "out"))
        logs.mkdir()
        logged = {"enabled": "true", "compress": "false", "rolling.enabled": "false", "dir": logs.as_uri()}
        submit = [part for key, value in logged.items() for part in ("--conf", f"spark.eventLog.{key}={value}")]
        audit(SAMPLE, out, Path(name, "log"), submit=submit)
        (log,) = logs.iterdir()
        events = map(json.loads, log.read_text().splitlines())
        return sum(
            event["Event"].endswith("SparkListenerSQLExecutionStart")
            and "CreateViewCommand" not in event["physicalPlanDescription"]
            for event in events
        )


def _measured() -> list[Watched]:
    """The sample, the night after it, few batches, the trivial tables, and the start of a session."""
    with TemporaryDirectory(prefix="txnlib-bench-") as name:
        folder = Path(name)
        generate(folder / "few", FEW, 500, 1, is_mixed=True)
        submitted = [str(ROOT / "spark-submit.sh"), "audit", "--input"]
        sample = [*submitted, str(SAMPLE), "--output", str(folder / "out")]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        taken = [
            watched(sample, environment, folder / "sample.log"),
            watched([*sample, "--mode", "incremental", "--as-of", LATER], environment, folder / "night.log"),
            watched(
                [*submitted, str(folder / "few"), "--output", str(folder / "few-out")], environment, folder / "few.log"
            ),
        ]
        for tables in (TABLES, 0):
            arguments = (str(FLOOR), str(folder / f"floor-{tables}"), str(tables))
            command, settings = spark_python(os.cpu_count() or 1, *arguments, driver_extraJavaOptions=LIGHT)
            taken.append(watched(command, settings, folder / "floor.log"))
        return taken


def _table(taken: list[list[Watched]]) -> Table:
    seconds = [median(run.seconds for run in runs) for runs in taken]
    cpu_seconds = [median(run.cpu_seconds for run in runs) for runs in taken]
    sample, night, few, tables, start = seconds
    over_tables = f"over {TABLES} tables"
    lines = [
        Ratio(f"the sample {over_tables}", sample, tables, at_most=MOST),
        Ratio(f"a night without news {over_tables}", night, tables, at_most=MOST),
        Ratio(f"{FEW:,} batches over a session's start", few, start, at_most=MOST_OVER_START),
        Ratio(f"the sample {over_tables}, all cores (aim: {MOST_CPU_SECONDS} s)", cpu_seconds[0], cpu_seconds[3]),
        Ratio(f"a night without news {over_tables}, all cores", cpu_seconds[1], cpu_seconds[3]),
    ]
    return Table("Small audits", ABOUT, "ours", "others", lines)


if __name__ == "__main__":
    main()
