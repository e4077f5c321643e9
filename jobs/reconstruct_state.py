"""Start the job `reconstruct_state`, which is in `txnlib/jobs`."""

from txnlib.jobs.reconstruct_state import program

if __name__ == "__main__":
    program()
