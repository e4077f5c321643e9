"""The peer: Kafka's own `kafka-dump-log.sh`, started as its script would, which prints the segments of a capture."""

from __future__ import annotations

import os
from pathlib import Path

from processes import watched

#: What kafka-run-class.sh and kafka-dump-log.sh pass.
JVM = [
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]


def print_segments(capture: Path, log: Path) -> float:
    """Seconds from start to end of the tool over all segments of a capture."""
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java"))
    segments = ",".join(map(str, sorted(capture.rglob("*.log"))))
    tool = [java, *JVM, "-cp", os.environ["KAFKA_CLASS_PATH"], "kafka.tools.DumpLogSegments"]
    return watched([*tool, "--files", segments], log).seconds
