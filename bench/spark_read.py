"""How long does a warm Spark session read a capture? `record_batches` into a DataFrame, whose rows go nowhere.

The session is one of its own, in a process of its own, so that its cores can be chosen; its start and one read before are
not counted.
"""

from __future__ import annotations

import sys
from pathlib import Path

from processes import output_of, spark_python, timed

RUNS = 4


def read_seconds(capture: Path, cores: int) -> float:
    """The shortest of some reads."""
    command, environment = spark_python(cores, __file__, str(capture))
    return min(map(float, output_of(command, environment).split()))


def main() -> None:
    from txnlib.delta.session import delta_session
    from txnlib.readers.capture import list_capture
    from txnlib.spark.capture_source import read_capture

    spark = delta_session("bench")
    spark.sparkContext.setLogLevel("ERROR")
    sink = read_capture(spark, list_capture(sys.argv[1:]), "record_batches").write.format("noop").mode("overwrite")
    sink.save()
    print(*(timed(sink.save) for _ in range(RUNS)))


if __name__ == "__main__":
    main()
