"""Start the job `reconstruct_state`, which is in `txnlib/jobs`."""

from txnlib.jobs.audit import reconstruct_state
from txnlib.jobs.main import start

if __name__ == "__main__":
    start(reconstruct_state)
