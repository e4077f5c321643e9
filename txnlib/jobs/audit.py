"""The jobs: an audit, and its three stages one by one.

What carries them out is imported once the options are known to be right: it takes a second to load.
"""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.jobs import options
from txnlib.jobs.progress import LINES, LOADING
from txnlib.jobs.result_files import result_files


def job(argv: Sequence[str]) -> int:
    """Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""
    given = options.parse(options.AUDIT, job.__doc__ or "", argv)
    with result_files(given) as files:
        LINES.show(LOADING)
        from txnlib.jobs import stages

        run = stages.open_run(given)
        if given.dry_run:
            return stages.print_plan(run)
        files.run = run
        stages.carry_out(run, stages.AUDIT, given)
        return stages.finish(run, given, files)


def ingest_dumps(argv: Sequence[str]) -> int:
    """Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""
    given = options.parse(options.INGEST, ingest_dumps.__doc__ or "", argv)
    LINES.show(LOADING)
    from txnlib.jobs import stages

    run = stages.open_run(given)
    if given.dry_run:
        return stages.print_plan(run)
    stages.carry_out(run, stages.INGEST, given)
    run.note("INGESTED")
    return 0


def reconstruct_state(argv: Sequence[str]) -> int:
    """Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""
    given = options.parse(options.RECONSTRUCT, reconstruct_state.__doc__ or "", argv)
    from txnlib.jobs import stages

    run = stages.reopen_run(given)
    stages.carry_out(run, stages.RECONSTRUCT, given)
    run.note("RECONSTRUCTED")
    return 0


def report_transactions(argv: Sequence[str]) -> int:
    """Judges open transactions, writes the reports and prints the result."""
    given = options.parse(options.REPORT, report_transactions.__doc__ or "", argv)
    with result_files(given) as files:
        from txnlib.jobs import stages

        run = files.run = stages.reopen_run(given)
        stages.carry_out(run, stages.REPORT, given)
        return stages.finish(run, given, files)
