"""Tables that fit in the driver: read and committed without Spark, and handed to the next steps as local relations.

Writing a table of a few rows with Spark, and reading it again, plans four queries and reads the log of the table three
times. This takes longer than making the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from txnlib.core.schema import TABLES
from txnlib.core.schema.rows_of_runs import WITH_CHAIN
from txnlib.core.schema.runs import CHAIN_COLUMNS, RUN_CHECKS, RUN_COLUMNS
from txnlib.readers.arrow_schemas import commented_schema
from txnlib.spark.local_rows import KEPT_ROWS

#: Table -> name of a constraint -> condition on every row. `*` applies to all tables.
CONSTRAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "*": RUN_CHECKS,
    **{name: table.checks for name, table in TABLES.items() if table.checks},
}


def constraints_of(table: str) -> dict[str, str]:
    """The constraints of a table: name -> condition."""
    return {**CONSTRAINTS["*"], **CONSTRAINTS.get(table, {})}


def options_of(table: str) -> dict[str, str]:
    """The writer options that create a table with its constraints."""
    return {f"delta.constraints.{name}": condition for name, condition in constraints_of(table).items()}


# ---- Tables without a JVM


#: Most bytes of the files of a table that is read without Spark. Parquet compresses, so the rows take several times as
#: many.
MAX_FILE_BYTES: Final = 4 << 20
#: What delta-rs raises if a table or a folder is not as expected. Spark then tries, too, and explains what is wrong.
ASK_SPARK: Final = (DeltaError, OSError)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")


def _stored_schema(name: str) -> pa.Schema:
    chain = CHAIN_COLUMNS if name in WITH_CHAIN else ()
    return commented_schema([*RUN_COLUMNS, *chain, *TABLES[name].columns])


def exists(folder: str) -> bool:
    """Whether there is a table in a folder, or something that only Spark can look at."""
    try:
        return bool(DeltaTable.is_deltatable(folder))
    except ASK_SPARK:
        return True


def columns(folder: str) -> set[str] | None:
    """The columns of a table; None if there is none that can be opened without Spark."""
    try:
        return {field.name for field in DeltaTable(folder).schema().fields}
    except ASK_SPARK:
        return None


def read(folder: str, name: str) -> pa.Table | None:
    """The rows of all runs in a table; None if only Spark should read it. A column that the stored table lacks is
    NULL."""
    try:
        table = DeltaTable(folder)
        files = pa.table(table.get_add_actions())
        # Without statistics, the number of records is NULL.
        if (
            sum(files["size_bytes"].to_pylist()) > MAX_FILE_BYTES
            or sum(filter(None, files["num_records"].to_pylist())) > KEPT_ROWS
        ):
            return None
        rows = pa.table(QueryBuilder().register("rows", table).execute("SELECT * FROM rows").read_all())
    except ASK_SPARK:
        return None
    if rows.num_rows > KEPT_ROWS:
        return None
    schema = _stored_schema(name)
    return pa.Table.from_arrays([_column(rows, field) for field in schema], schema=schema)


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    return rows[field.name].cast(field.type)


def is_plain(run_id: str) -> bool:
    """Whether Spark and delta-rs write a run id in paths in the same way. Else one would not find files that the other
    removes."""
    return _PLAIN_NAME.fullmatch(run_id) is not None


def stamped(rows: pa.Table, name: str, stamps: Mapping[str, str | int | None]) -> pa.Table:
    """The rows of a run in a table, with the columns that name the run."""
    schema = _stored_schema(name)
    constants = [pa.repeat(pa.scalar(value, schema.field(key).type), rows.num_rows) for key, value in stamps.items()]
    return pa.Table.from_arrays([*constants, *rows.columns], schema=schema)


def commit(
    folder: str, name: str, rows: pa.Table, *, replaced: str | None, statistics: Sequence[str], note: str = ""
) -> bool:
    """Adds stamped rows to a table. Returns False, without writing, if Spark must do it.

    `replaced`: a condition on the rows that these replace. `statistics`: columns with minimum and maximum in the log.
    `note`: a note on the commit.
    """
    options: dict[str, Any] = {"mode": "append"} if replaced is None else {"mode": "overwrite", "predicate": replaced}
    if note:
        options["commit_properties"] = CommitProperties(custom_metadata={"userMetadata": note})
    try:
        write_deltalake(_opened(folder, name, statistics), rows, schema_mode="merge", **options)
    except ASK_SPARK:
        return False
    return True


def _opened(folder: str, name: str, statistics: Sequence[str]) -> DeltaTable:
    """The table, created if necessary, with its constraints."""
    if not exists(folder):
        DeltaTable.create(
            folder,
            _stored_schema(name),
            mode="ignore",
            description=TABLES[name].comment,
            partition_by=["run_id", *TABLES[name].partitioned_by],
            configuration={"delta.dataSkippingStatsColumns": ",".join(statistics)},
        )
    table = DeltaTable(folder)
    if table.version() == 0 and not any(key.startswith("delta.constraints.") for key in table.metadata().configuration):
        table.alter.add_constraint(constraints_of(name))
    return table
