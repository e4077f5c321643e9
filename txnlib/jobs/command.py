"""The command `txnlib-audit` of the wheel."""

from __future__ import annotations

import sys

from txnlib.errors import MissingExtraError


def audit() -> None:
    """Runs the job `audit` as a program.

    Raises SystemExit only if the exit code is not 0, as Databricks requires: 2 if an extra of the wheel is not
    installed.
    """
    try:
        from txnlib.jobs.audit import job
        from txnlib.jobs.main import start
    except ModuleNotFoundError as error:
        sys.stderr.write(f"txnlib: {MissingExtraError('txnlib-audit', error.name or '', 'spark')}\n")
        sys.exit(2)
    start(job)
