"""Tables for the command line without Spark. Unnamed columns are NULL."""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from tests.support.older_tables import note_number
from txnlib.ask.main import main
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.core.schema.views import VIEWS
from txnlib.engine.tables import stored_columns
from txnlib.pipeline.audit import SparkRows
from txnlib.readers.arrow_schemas import arrow_schema
from txnlib.settings import Settings
from txnlib.spark.frames import frame_of
from txnlib.spark.schemas import TABLES, spark_schema
from txnlib.version import SCHEMA_NUMBER

NOW = 1_710_120_000_000
RUN = f"test-{NOW}"


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


_FILE = ("topic", "partition", "source", "segment_base_offset")
_PARTS = count(1)


def write(root: Path, name: str, *rows: dict[str, Any], run_id: str = RUN) -> None:
    """Adds rows to a table, in the schema that an audit gives it. Rows of parts are of one of their own, if of none."""
    if name in OF_PARTS and not any("part" in row for row in rows):
        part, rows = next(_PARTS), tuple({"source": "raw:1"} | row for row in rows)
        files = {tuple(row.get(key) for key in _FILE) for row in rows}
        write(
            root,
            "segments",
            *[dict(zip(_FILE, each, strict=True)) | {"parts": [part]} for each in files],
            run_id=run_id,
        )
        rows = tuple(row | {"part": part} for row in rows)
    schema = arrow_schema(stored_columns(name))
    full = [dict.fromkeys(schema.names) | {"cluster": "test", "run_id": run_id} | row for row in rows]
    write_deltalake(str(root / name), pa.Table.from_pylist(full, schema), mode="append", partition_by=["run_id"])
    if name == "audit_runs":
        note_number(root, str(SCHEMA_NUMBER))


def write_plan(root: Path, *rows: Mapping[str, Any], first: int = 1) -> None:
    """Adds a step of the plan for each open transaction, in this order."""
    names = ("topic", "partition", "producer_id", "start_offset", "transactional_id", "verdict", "reason")
    steps = [{name: row[name] for name in names} | {"action": "ABORT_LATER"} for row in rows]
    write(root, "abort_plan", *[step | {"number": number} for number, step in enumerate(steps, first)])


def spark_rows(spark: SparkSession, root: Path) -> SparkRows:
    """What Spark answers about the tables and views of a folder, without a look at Delta's log by Spark."""

    def read(name: str) -> DataFrame:
        if name not in VIEWS:
            return _stored(spark, root, name)
        frames: dict[str, Any] = {each: read(each) for each in VIEWS[name].reads}
        return spark.sql(VIEWS[name].query, **frames)

    return SparkRows(str(root), read)


def _stored(spark: SparkSession, root: Path, name: str) -> DataFrame:
    """The rows of a table; none if it is not there."""
    rows = DeltaTable(str(root / name)).to_pyarrow_table() if (root / name).exists() else None
    columns = stored_columns(name)
    return frame_of(spark, arrow_schema(columns).empty_table() if rows is None else rows, spark_schema(columns))


@contextlib.contextmanager
def session_views(spark: SparkSession, root: Path) -> Iterator[None]:
    """The tables of a folder and the views, as temporary views; from memory: opening dozens of Delta tables takes
    long."""
    for name in TABLES:
        _stored(spark, root, name).createOrReplaceTempView(name)
    for name, view in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {view.named(str)}")
    yield
    for name in (*TABLES, *VIEWS):
        spark.catalog.dropTempView(name)


def write_run(
    root: Path,
    as_of_ms: int = NOW,
    status: str = "DONE",
    cluster: str = "test",
    verdicts: Mapping[str, int] = MappingProxyType({"HANGING": 1}),
    tables: Sequence[str] = (),
    **settings: Any,
) -> str:
    """The row of a run; its id. `tables`: those in which it says that it has rows."""
    decided = Settings(cluster=cluster, as_of_ms=as_of_ms, as_of_basis="given", **settings)
    counts = json.dumps({"verdicts": dict(verdicts), "transactions": dict(verdicts), "tables": [*tables]})
    row = {
        "cluster": cluster, "as_of": at(as_of_ms), "started_at": at(NOW), "status": status,
        "settings": decided.model_dump_json(), "counts": counts,
    }  # fmt: skip
    write(root, "audit_runs", row, run_id=decided.run_id)
    return decided.run_id


#: The tables that the commands of `txn-audit` read.
READ_BY_COMMANDS = (
    "coverage", "open_transactions", "producer_states", "record_batches", "transactional_ids", "coordinator_states",
    "partition_transactions", "transaction_log", "late_transactions", "partitions", "findings", "abort_plan",
    "blocked_groups",
    "ended_transactions", "producer_spans", "producer_id_owners", "transactions", "transaction_outcomes",
    "quarantine",
)  # fmt: skip


def called_plainly(report: str) -> str:
    """The report as if `txn-audit` were on the PATH."""
    return re.sub(
        r"^(  |for details: |to do .*, with checks: )\S*txn-audit ", r"\1txn-audit ", report, flags=re.MULTILINE
    )


def txn_audit(root: Path | str, *argv: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, argv), "--tables", str(root)])
    return code, out.getvalue(), err.getvalue()
