"""Start the job `ingest_dumps`, which is in `txnlib/jobs`."""

from txnlib.jobs.ingest_dumps import job
from txnlib.jobs.main import start

if __name__ == "__main__":
    start(job)
