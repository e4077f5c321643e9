"""Start the job `audit`, which is in `txnlib/jobs`."""

from txnlib.jobs.command import start_program

if __name__ == "__main__":
    start_program("txnlib.jobs.audit:job")
