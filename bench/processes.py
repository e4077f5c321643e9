"""A program and all that it starts: seconds, memory and processor time."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Watched(NamedTuple):
    """What a program took: seconds from start to end, the highest memory (MiB), seconds of all cores."""

    seconds: float
    mib: int
    cpu_seconds: float


def watched(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Watched:
    """Runs a program with its output in a file. A program that fails ends the measurement."""
    with log.open("wb") as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=out)
        watch = Watch(process.pid)
        watch.start()
        code = process.wait()
        seconds = time.perf_counter() - begun
    if code:
        raise SystemExit(f"{shlex.join(command)[:200]} failed:\n{log.read_text(errors='replace')[-4000:]}")
    watch.join()
    return Watched(seconds, watch.peak, sum(watch.cpu.values()))


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
