"""Start the job `report_transactions`, which is in `txnlib/jobs`."""

from txnlib.jobs.command import start_program

if __name__ == "__main__":
    start_program("txnlib.jobs.audit:report_transactions")
