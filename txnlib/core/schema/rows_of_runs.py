"""Runs: their table, what every table has of its run, and the rows of each.

Spark, DuckDB and DataFusion read its SQL. What was read of a file is stored once, by the first audit that read it, and
each run lists in `segments` the parts that it uses.
"""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import AS_OF, STRING, TIMESTAMP, Column, Table, are_present
from txnlib.core.schema.ingested import COMMITTED_OFFSETS, RECORD_BATCHES, TRANSACTION_LOG

#: The tables whose rows belong to parts of files. All other rows belong to their run.
OF_PARTS: Final = {
    "record_batches": RECORD_BATCHES,
    "transaction_log": TRANSACTION_LOG,
    "committed_offsets": COMMITTED_OFFSETS,
}


#: Instant from which parts are numbered, in epoch seconds (2020-01-01), and how many numbers each second has.
_FIRST_S: Final = 1_577_836_800
PARTS_A_SECOND: Final = 1 << 32


def part_at(second: float) -> int:
    """The number of the first part of an audit that began at `second`, in epoch seconds. Its next parts have the next
    numbers. Two audits share a number only if they began in the same microseconds."""
    return int((second - _FIRST_S) * PARTS_A_SECOND)


def rows_of_runs(name: str) -> str:
    """A query for the rows of a table that belong to parts, once for each run that uses the part, with its `run_id`.

    Columns: `cluster`, `run_id`, and those of the table. Tables are in braces.
    """
    columns = ", ".join(f"stored.{column}" for column in OF_PARTS[name].names)
    return f"""
SELECT file.cluster, file.run_id, {columns}
FROM {{{name}}} AS stored
JOIN (SELECT DISTINCT cluster, run_id, topic, partition, source, segment_base_offset, parts FROM {{segments}}) AS file
  ON stored.cluster = file.cluster AND stored.topic = file.topic AND stored.partition = file.partition
  AND stored.source = file.source AND (stored.segment_base_offset IS NOT DISTINCT FROM file.segment_base_offset)
  AND array_contains(file.parts, stored.part)
"""


AUDIT_RUNS: Final = Table(
    comment="The audits of each cluster: their instants, settings and outcomes.",
    columns=(
        AS_OF,
        Column("started_at", TIMESTAMP, "When it began."),
        Column("finished_at", TIMESTAMP, "When it ended; NULL while it runs, or if it died."),
        Column(
            "status",
            STRING,
            "RUNNING (or killed), DONE, FAILED, INGESTED (after ingest_dumps) or RECONSTRUCTED (after"
            " reconstruct_state).",
        ),
        Column("input", STRING, "Inputs of the audit."),
        Column("settings", STRING, "Settings as JSON."),
        Column("version", STRING, "Version of txnlib."),
        Column("engine", STRING, "Engine that carried it out, with its version."),
        Column("counts", STRING, "Number of rows per verdict, and the tables with rows, as JSON."),
    ),
    checks={"run_has_an_instant": are_present("as_of", "started_at", "status", "settings", "version")},
)

#: The first columns of every table, as stored.
RUN_COLUMNS: Final = (
    Column("cluster", STRING, "Name of the cluster."),
    Column("run_id", STRING, "Id of the run: cluster and as_of. A second audit of both replaces its rows."),
)
#: CHECK constraints of every table.
RUN_CHECKS: Final = {"run_is_named": are_present("cluster", "run_id")}
