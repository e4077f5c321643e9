"""The machine of a measurement: cores, processor, memory and versions; no names."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

#: Those a process may use, which a container can limit.
CORES = len(os.sched_getaffinity(0))
LIBRARIES = ("pyspark", "delta-spark", "pyarrow", "numpy", "google-crc32c", "polars")


def describe() -> str:
    memory = int(_found(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), "0")) / 2**20
    model = _found(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(), platform.machine())
    said = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    java = _found(r'version "([^"]+)"', said, "?")
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{CORES} cores ({model}), {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, Java {java}, {libraries}, "
        f"Kafka's tool {os.environ['KAFKA_VERSION']}"
    )


def java_command() -> str:
    return str(Path(os.environ["JAVA_HOME"], "bin", "java"))


def _found(pattern: str, text: str, otherwise: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else otherwise
