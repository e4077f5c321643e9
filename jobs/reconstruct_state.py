"""Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.run import Run, main, reopen_run, say
from txnlib.spark.coordinator_states import coordinator_states
from txnlib.spark.findings import findings
from txnlib.spark.partition_transactions import partition_transactions
from txnlib.spark.producer_id_owners import producer_id_owners
from txnlib.spark.producer_spans import producer_spans
from txnlib.spark.producer_states import producer_states
from txnlib.spark.transactional_ids import transactional_ids
from txnlib.spark.transactions import transactions


def reconstruct(run: Run) -> None:
    """Writes the windows' results, then every table that is read off them."""
    read, settings = run.tables.read, run.settings
    say("reconstructing producers and coordinators")
    run.write_all(
        {
            "producer_spans": producer_spans(read("record_batches"), read("producer_snapshots"), read("coverage")),
            "coordinator_states": coordinator_states(read("transaction_log")),
        }
    )
    spans, states = read("producer_spans"), read("coordinator_states")
    expiration_ms = settings.producer_id_expiration_ms
    run.write_all(
        {
            "producer_states": producer_states(spans, as_of_ms=settings.as_of_ms, producer_id_expiration_ms=expiration_ms),
            "partition_transactions": partition_transactions(spans),
            "transactional_ids": transactional_ids(states, spans),
            "transactions": transactions(states),
            "producer_id_owners": producer_id_owners(states),
        }
    )
    run.tables.write(
        "findings",
        findings(
            spans,
            states,
            read("transactions"),
            read("producer_id_owners"),
            producer_id_expiration_ms=expiration_ms,
            coordinator_partitions=settings.coordinator_partitions,
        ),
    )


def job(argv: Sequence[str]) -> int:
    run = reopen_run(options.parse(options.RECONSTRUCT, __doc__ or "", argv))
    reconstruct(run)
    run.note("RECONSTRUCTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
