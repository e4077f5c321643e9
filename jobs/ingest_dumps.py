"""Start the job `ingest_dumps`, which is in `txnlib/jobs`."""

from txnlib.jobs.command import start_program

if __name__ == "__main__":
    start_program("txnlib.jobs.audit:ingest_dumps")
