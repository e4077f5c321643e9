"""Start the job `reconstruct_state`, which is in `txnlib/jobs`."""

from txnlib.jobs.main import start
from txnlib.jobs.reconstruct_state import job

if __name__ == "__main__":
    start(job)
