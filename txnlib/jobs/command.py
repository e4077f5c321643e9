"""The command `txnlib-audit` of the wheel."""

from __future__ import annotations

import sys

from txnlib.engine.choice import missing_extra


def audit() -> None:
    """Runs the job `audit` as a program.

    Raises SystemExit only if the exit code is not 0, as Databricks requires: 2 if an extra of the wheel is not
    installed.
    """
    try:
        from txnlib.jobs.audit import job
        from txnlib.jobs.main import start
    except ModuleNotFoundError as error:
        sys.stderr.write(f"txnlib: {missing_extra('txnlib-audit', error)}\n")
        sys.exit(2)
    start(job)
