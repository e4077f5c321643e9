"""Random sequences of audits: each has the rows of a full one.

Audits are carried out twice, out of order, next to each other, and are killed between two tables.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_log import ChangingLog
from tests.support.segments import rows_of_file
from txnlib.errors import UnreadableInputError
from txnlib.pipeline.parts import with_parts
from txnlib.readers.capture import Capture, list_capture

Row = dict[str, Any]
#: What says how rows were read.
OF_READING = ("part", "parts")


def without_reading(rows: list[Row]) -> list[str]:
    return sorted(repr([value for name, value in row.items() if name not in OF_READING]) for row in rows)


@dataclass
class Audits:
    """The tables of the audits of one cluster, and what full audits would have put there."""

    record_batches: list[Row] = field(default_factory=list)
    segments: dict[str, list[Row]] = field(default_factory=dict)
    expected: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)

    def known(self, run_id: str) -> list[Row]:
        """What a run knows that is opened now (`pipeline.parts.read_segments`)."""
        rows = [row | {"run_id": each} for each, rows in self.segments.items() if each <= run_id for row in rows]
        return [row for row in rows if row["landmarks"] and row["parts"] and row["last_gap_offset"] is None]

    def audit(self, run_id: str, capture: Capture, known: list[Row], tables: int = 2) -> bool:
        """One audit, killed after so many tables. Whether it used what another one has read."""
        capture = with_parts(capture, known)
        read, of_files = (
            [row for file in capture.files for row in rows_of_file(name, file)]
            for name in ("record_batches", "segments")
        )
        self.expected.pop(run_id, None)
        if tables > 0:
            self.record_batches += read
        if tables > 1:
            self.segments[run_id] = of_files
            alone = with_parts(capture, [])
            full = [
                [row for file in alone.files for row in rows_of_file(name, file)]
                for name in ("record_batches", "segments")
            ]
            self.expected[run_id] = (without_reading(full[0]), without_reading(full[1]))
        own = {file.part for file in capture.files}
        return any(not own.issuperset(row["parts"]) for row in of_files)

    def check(self) -> None:
        for run_id, (batches, segments) in self.expected.items():
            parts = {part for row in self.segments[run_id] for part in row["parts"]}
            assert without_reading([row for row in self.record_batches if row["part"] in parts]) == batches, run_id
            assert without_reading(self.segments[run_id]) == segments, run_id


def captured(log: ChangingLog, folder: Path) -> Capture | None:
    """What a night shows; None if that is nothing."""
    log.capture(folder)
    try:
        return list_capture([str(folder)])
    except UnreadableInputError:
        return None


@pytest.mark.parametrize("seed", range(20))
def test_every_finished_audit_has_the_rows_of_a_full_one(tmp_path, seed):
    used = 0
    for number in range(8):
        chance = random.Random(f"{seed} {number}")
        log, audits, captures = ChangingLog(chance), Audits(), {}
        for night in range(chance.randint(3, 7)):
            log.change()
            before = audits.known(f"eu-{night}")
            capture = captured(log, tmp_path / f"{number}-{night}")
            if capture is None:
                continue
            captures[f"eu-{night}"] = capture
            how = chance.choice(["ordinary", "ordinary", "full", "twice", "older", "killed", "two at once"])
            tables = chance.randint(0, 1) if how == "killed" else 2
            if how != "older":
                used += audits.audit(f"eu-{night}", capture, [] if how == "full" else before, tables)
            if how == "two at once":  # both began before one of them ended
                audits.audit(chance.choice([f"eu-{night}", f"eu-{night}b"]), capture, before)
            elif how in ("twice", "older"):
                again = chance.choice(sorted(captures))
                used += audits.audit(again, captures[again], audits.known(again), chance.choice([2, 2, 1, 0]))
            audits.check()
    assert used > 3, "most audits know something"
