"""Start the job `ingest_dumps`, which is in `txnlib/jobs`."""

from txnlib.jobs.ingest_dumps import program

if __name__ == "__main__":
    program()
