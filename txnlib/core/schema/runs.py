"""The table of the runs, and what every table has."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import AS_OF, STRING, TIMESTAMP, Column, Table, are_present

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
