"""Audits of captures into temporary folders.

Only those tables are made that a test looks at, and those they are made from: that all can be made is
`tests/jobs/test_audit.py`'s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.frames import frame
from txnlib.core.batch_runs import single_batches
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.engine.engine import open_engine
from txnlib.engine.store import RunStore
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.pipeline.audit import close, report_made
from txnlib.pipeline.run import Run, open_run
from txnlib.pipeline.scheduler import TableStep, carry_out
from txnlib.pipeline.tables import AUDIT as AUDIT_STEPS
from txnlib.settings import Settings
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES


@dataclass
class AuditTables:
    """The tables of an audit, each made when it is asked for."""

    run: Run
    folder: TemporaryDirectory[str]
    #: Names of the steps that were taken.
    _taken: set[str] = field(default_factory=set)
    _rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def make(self, *names: str) -> None:
        """Makes these tables, if they were not yet made."""
        needed = set[str]().union(*map(needed_for, names)) - self._taken
        if steps := [step for step in AUDIT_STEPS if step.name in needed]:
            carry_out(self.run, steps)
            self._taken |= needed
            self._rows.clear()  # a step may write a table again

    def frame(self, name: str) -> DataFrame:
        self.make(name)
        return self.run.tables.read(name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        self.make(name)
        if name not in self._rows:
            self._rows[name] = arrow_of(self.run.tables.read(name)).to_pylist()
        return self._rows[name]

    def finished(self, *names: str) -> Path:
        """The folder, with these tables, once the run is marked as done."""
        self.make(*names)
        self.run.note("RUNNING")
        close(self.run, report_made(self.run))
        return Path(self.folder.name)


def printed(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The rows in order. Of `record_batches`, the single batches: a run ends where the reader resumed."""
    return sorted(repr(batch) for row in rows for batch in single_batches(row))


def needed_for(name: str) -> set[str]:
    """The step of a table, and all that it is made and read from."""
    reads = {step.name: set(step.reads) for step in AUDIT_STEPS}
    found, last = {name, "segments"} if name in OF_PARTS else {name}, set[str]()
    while found != last:
        last, found = found, found.union(*(reads[step] for step in found if step in reads))
    return found


def made_of(name: str, settings: Settings, **frames: DataFrame) -> list[dict[str, Any]]:
    """The rows of a table that its step makes of these tables."""
    engine = open_engine()
    with TemporaryDirectory() as folder:
        tables = RunStore(engine.store(folder, None), settings.cluster, settings.run_id)
        for each in OF_PARTS.keys() & frames:  # of one part
            frames[each] = frames[each].withColumn("part", F.lit(1).cast("long"))
            frames["segments"] = frame(engine.spark, TABLES["segments"], {"parts": [1]})
        for each, rows in frames.items():
            tables.write(each, rows)
        step = next(step for step in AUDIT_STEPS if step.name == name)
        assert isinstance(step, TableStep)
        made = step.transform(Run(engine, tables, settings, datetime.now(UTC)))
        found: list[dict[str, Any]] = (made if isinstance(made, pa.Table) else arrow_of(made)).to_pylist()
        return found


#: What was audited in this session: several tests look at the same audit, and none changes its tables.
_AUDITED: dict[tuple[str, ...], AuditTables] = {}


def audited(capture: Path | list[Path], *options: str) -> AuditTables:
    """The tables of an audit of a capture, with the given options; of one that was audited so before, those tables."""
    inputs = capture if isinstance(capture, list) else [capture]
    key = (*map(str, inputs), *options)
    if key not in _AUDITED:
        _AUDITED[key] = audited_anew(inputs, *options)
    return _AUDITED[key]


def audited_anew(inputs: list[Path], *options: str, folder: TemporaryDirectory[str] | None = None) -> AuditTables:
    """The same, of an audit of its own. `folder`: where earlier audits lie."""
    folder = folder or TemporaryDirectory()
    argv = [word for path in inputs for word in ("--input", str(path))]
    given = parse(AUDIT, "", [*argv, "--output", folder.name, *options])
    return AuditTables(open_run(request_of(given)), folder)
