"""Start the job `audit`, which is in `txnlib/jobs`."""

from txnlib.jobs.audit import job
from txnlib.jobs.main import start

if __name__ == "__main__":
    start(job)
