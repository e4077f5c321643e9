"""Start the job `ingest_dumps`, which is in `txnlib/jobs`."""

from txnlib.jobs.audit import ingest_dumps
from txnlib.jobs.main import start

if __name__ == "__main__":
    start(ingest_dumps)
