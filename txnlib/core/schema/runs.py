"""The table of the runs, and what every table has."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import AS_OF, INT, STRING, TIMESTAMP, Column, Table, are_present

#: What identifies the rows that belong to the log.
CHAIN: Final = Column("chain", STRING, "Chain of runs: the id of its first run.")
NIGHT: Final = Column("night", INT, "Number of the run in its chain; 0 for the first.")

AUDIT_RUNS: Final = Table(
    comment="The audits of each cluster: their instants, settings and outcomes.",
    columns=(
        AS_OF,
        Column("started_at", TIMESTAMP, "When it began."),
        Column("finished_at", TIMESTAMP, "When it ended; NULL while it runs, or if it died."),
        Column(
            "status",
            STRING,
            "RUNNING, DONE, FAILED, DIED (according to a later audit), INGESTED (after ingest_dumps) or RECONSTRUCTED"
            " (after reconstruct_state).",
        ),
        Column("input", STRING, "Inputs of the audit."),
        Column("settings", STRING, "Settings as JSON."),
        Column("version", STRING, "Version of txnlib."),
        Column("engine", STRING, "Engine that carried it out, with its version."),
        Column("counts", STRING, "Number of rows of every table, and per verdict, as JSON."),
        Column("owner", STRING, "Process of the audit: host, process id, and start in ticks since the machine booted."),
        CHAIN,
        NIGHT,
    ),
    checks={"run_has_an_instant": are_present("as_of", "started_at", "status", "settings", "version")},
)

#: The first columns of every table, as stored.
RUN_COLUMNS: Final = (
    Column("cluster", STRING, "Name of the cluster."),
    Column("run_id", STRING, "Id of the run: cluster and as_of. A second audit of both replaces its rows."),
)
#: Columns after these, in tables with rows of the log.
CHAIN_COLUMNS: Final = (CHAIN, NIGHT)
#: CHECK constraints of every table.
RUN_CHECKS: Final = {"run_is_named": are_present("cluster", "run_id")}
