"""Start the job `audit`, which is in `txnlib/jobs`."""

from txnlib.jobs.audit import program

if __name__ == "__main__":
    program()
