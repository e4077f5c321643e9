"""Random sequences of audits: each has the rows of a full one.

Audits are carried out twice, out of order, next to each other, and are killed between two tables.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_log import ChangingCoordinator, ChangingGroups, ChangingLog
from tests.support.segments import rows_of_file
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.errors import UnreadableInputError
from txnlib.pipeline.parts import with_parts
from txnlib.readers.capture import Capture, list_capture

Row = dict[str, Any]
#: Seeds in CI; each is eight sequences.
FEW = 6
#: What says how rows were read.
OF_READING = ("part", "parts")


def without_reading(rows: list[Row]) -> list[str]:
    return sorted(repr([value for name, value in row.items() if name not in OF_READING]) for row in rows)


@dataclass
class Audits:
    """The tables of the audits of one cluster, and what full audits would have put there."""

    of_parts: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in OF_PARTS})
    segments: dict[str, list[Row]] = field(default_factory=dict)
    expected: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def known(self, run_id: str) -> list[Row]:
        """What a run knows that is opened now (`pipeline.parts.read_segments`)."""
        rows = [row | {"run_id": each} for each, rows in self.segments.items() if each <= run_id for row in rows]
        return [row for row in rows if row["landmarks"] and row["parts"] and row["last_gap_offset"] is None]

    def audit(self, run_id: str, capture: Capture, known: list[Row], tables: int = 2) -> bool:
        """One audit, killed after so many tables. Whether it used what another one has read."""
        capture = with_parts(capture, known)
        read, full = (rows_by_table(each) for each in (capture, with_parts(capture, [])))
        of_files = read["segments"]
        self.expected.pop(run_id, None)
        if tables > 0:
            for name, rows in self.of_parts.items():
                rows += read[name]
        if tables > 1:
            self.segments[run_id] = of_files
            self.expected[run_id] = {name: without_reading(rows) for name, rows in full.items()}
        own = {file.part for file in capture.files}
        return any(not own.issuperset(row["parts"]) for row in of_files)

    def check(self) -> None:
        for run_id, expected in self.expected.items():
            parts = {part for row in self.segments[run_id] for part in row["parts"]}
            for name, rows in self.of_parts.items():
                assert without_reading([row for row in rows if row["part"] in parts]) == expected[name], (run_id, name)
            assert without_reading(self.segments[run_id]) == expected["segments"], run_id


def rows_by_table(capture: Capture) -> dict[str, list[Row]]:
    return {
        name: [row for file in capture.files for row in rows_of_file(name, file)] for name in (*OF_PARTS, "segments")
    }


def captured(log: ChangingLog, folder: Path) -> Capture | None:
    """What a night shows; None if that is nothing."""
    log.capture(folder)
    try:
        return list_capture([str(folder)])
    except UnreadableInputError:
        return None


@pytest.mark.parametrize("kind", [ChangingLog, ChangingCoordinator, ChangingGroups])
@pytest.mark.parametrize(
    "seed", [*range(FEW), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FEW, 20))]
)
def test_every_finished_audit_has_the_rows_of_a_full_one(tmp_path, seed, kind):
    used = 0
    for number in range(8):
        chance = random.Random(f"{seed} {number}")
        log, audits, captures = kind(chance), Audits(), {}
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


def test_of_compacted_logs_only_the_newest_segment_goes_on(tmp_path):
    """Whether an audit knew it, or its index is all that was captured."""
    log, audits = ChangingCoordinator(random.Random(1)), Audits()
    old, new = (f"{log.end:020}", log.batch()), (f"{log.end:020}", log.batch())
    folder = tmp_path / "1" / log.folder
    folder.mkdir(parents=True)

    def known_of(*segments: tuple[str, bytes], index: str | None = None) -> list[str]:
        """The captured segments of which something is known, by name; then an audit reads them."""
        for path in folder.iterdir():
            path.unlink()
        for name, content in segments:
            (folder / f"{name}.log").write_bytes(content)
        if index is not None:
            (folder / f"{index}.index").touch()
        capture = with_parts(list_capture([str(tmp_path)]), audits.known("eu-1"))
        audits.audit("eu-0", capture, [])
        return [Path(file.path).stem for file in capture.files if file.earlier]

    assert known_of(old) == []
    assert known_of(old) == [old[0]]
    assert known_of(old, index=new[0]) == []
    assert known_of(old, new) == []
    assert known_of(old, new) == [new[0]]
    audits.segments["eu-1"] = audits.segments["eu-0"]
    assert known_of(old) == []
