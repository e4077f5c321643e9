"""The sample's audit, next to trivial tables by Spark.

    eval "$(./bootstrap.sh run)" && PYTHONPATH=. .venv/bin/python bench/small_audit.py [--runs 3]

Runs the sample of `./spark-submit.sh`, a night after it without news, and the floor (trivial_tables.py), in turn. Prints the
medians of the seconds a user waits, and of the seconds of all cores. The tables that it writes are removed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from processes import ROOT, Watched, spark_python, watched
from ratio_table import Ratio, Table

SAMPLE, FLOOR = ROOT / "examples" / "quickstart" / "brokers", ROOT / "bench" / "trivial_tables.py"
#: The JVM of a light audit in spark-submit.sh.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:NewSize=384m -XX:MetaspaceSize=192m"
LATER = "2099-01-01T00:00:00Z"
MOST, MOST_CPU_SECONDS = 0.7, 35
ABOUT = """Seconds from start to end, start of the JVM included, of an audit of 0.2 MiB by `./spark-submit.sh`, and of a night after
it without news; against a session that writes 25 Delta tables of one row by Spark, with the same JVM options. Below, the seconds of
all cores. Medians, the three in turn."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench/small_audit.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="of each (default: 3)")
    given = parser.parse_args()
    taken = [measure() for _ in range(given.runs)]
    result = table([list(runs) for runs in zip(*taken, strict=True)])
    print(f"\n{result.title}\n\n{result.text()}\n\n{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")


def measure() -> tuple[Watched, Watched, Watched]:
    """The sample, the night after it, and the floor."""
    with TemporaryDirectory(prefix="txnlib-bench-") as name:
        folder = Path(name)
        audit = [str(ROOT / "spark-submit.sh"), "audit", "--input", str(SAMPLE), "--output", str(folder / "out")]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        sample = watched(audit, environment, folder / "sample.log")
        night = watched([*audit, "--mode", "incremental", "--as-of", LATER], environment, folder / "night.log")
        options = {"driver_extraJavaOptions": LIGHT}
        command, settings = spark_python(os.cpu_count() or 1, str(FLOOR), str(folder / "floor"), **options)
        return sample, night, watched(command, settings, folder / "floor.log")


def table(taken: list[list[Watched]]) -> Table:
    sample, night, floor = [(median(run.seconds for run in runs), median(run.cpu_seconds for run in runs)) for runs in taken]
    lines = [
        Ratio("the sample", sample[0], floor[0], at_most=MOST),
        Ratio("a night without news", night[0], floor[0], at_most=MOST),
        Ratio(f"the sample, all cores (aim: {MOST_CPU_SECONDS} s)", sample[1], floor[1]),
        Ratio("a night without news, all cores", night[1], floor[1]),
    ]
    return Table("Small audits", ABOUT, "seconds", "25 tables", lines)


if __name__ == "__main__":
    main()
