"""Start the job `report_transactions`, which is in `txnlib/jobs`."""

from txnlib.jobs.report_transactions import program

if __name__ == "__main__":
    program()
