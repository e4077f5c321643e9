"""Start the job `report_transactions`, which is in `txnlib/jobs`."""

from txnlib.jobs.main import start
from txnlib.jobs.report_transactions import job

if __name__ == "__main__":
    start(job)
