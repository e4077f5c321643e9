"""Programs run on chosen cores, with their time and memory."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def spark_python(cores: int, *arguments: str, **settings: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a Python program whose Spark has so many cores, with the settings of spark-submit.sh
    and those given, by their names behind `spark.` with `_` for `.`."""
    submit = [
        *("--master", f"local[{cores}]"),
        *("--properties-file", str(ROOT / "conf" / "spark-defaults.conf")),
        *("--jars", os.environ["DELTA_JARS"]),
        *[word for name, value in settings.items() for word in ("--conf", f"spark.{name.replace('_', '.')}={value}")],
        "pyspark-shell",
    ]
    paths = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}".rstrip(os.pathsep)
    return [sys.executable, *arguments], {**os.environ, "PYSPARK_SUBMIT_ARGS": shlex.join(submit), "PYTHONPATH": paths}


def output_of(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """Stdout of a program; its stderr is shown if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command[:6])} … failed:\n{done.stderr[-4000:]}")
    return done.stdout


class Watched(NamedTuple):
    """What a program and all it starts took: seconds from start to end, the highest memory (MiB), seconds of all
    cores."""

    seconds: float
    mib: int
    cpu_seconds: float


def watched(command: Sequence[str], environment: dict[str, str], errors: Path) -> Watched:
    """Runs a program, its output into a file, and looks at it meanwhile."""
    begun = time.perf_counter()
    with errors.open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        watch = Watch(process.pid)
        watch.start()
        code = process.wait()
    if code:
        raise SystemExit(f"{shlex.join(command[:6])} … failed:\n{errors.read_text()[-4000:]}")
    return Watched(time.perf_counter() - begun, watch.peak, sum(watch.cpu.values()))


class Watch(threading.Thread):
    """Memory and processor time of a process and all below it, looked at four times a second.

    Memory that they share is counted once. Of a process that ends between two looks, what it did since the first of
    them is lost.
    """

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.peak = 0
        self.cpu: dict[int, float] = {}

    def run(self) -> None:
        while Path(f"/proc/{self.process}").exists():
            tree = _tree(self.process)
            self.peak = max(self.peak, sum(map(_resident_kib, tree)) // 1024)
            self.cpu.update((process, seconds) for process in tree if (seconds := _cpu_seconds(process)))
            time.sleep(0.25)


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime


def _tree(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path("/proc", each, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(each))
    found = [process]
    for known in found:
        found += children.get(known, [])
    return found


def _resident_kib(process: int) -> int:
    """Proportional: a page that n processes map is an nth of a page in each."""
    try:
        lines = dict(line.split(":") for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:])
    except (OSError, ValueError):
        return 0
    return int(lines["Pss"].split()[0]) if "Pss" in lines else 0
