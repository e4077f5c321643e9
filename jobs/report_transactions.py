"""Start the job `report_transactions`, which is in `txnlib/jobs`."""

from txnlib.jobs.audit import report_transactions
from txnlib.jobs.main import start

if __name__ == "__main__":
    start(report_transactions)
