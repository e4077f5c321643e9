"""The command `txnlib-audit` of the wheel."""

from __future__ import annotations

from txnlib.interrupt import start_program


def audit() -> None:
    """Runs the job `audit` as a program.

    Raises SystemExit only if the exit code is not 0, as Databricks requires: 2 if an extra of the wheel is not
    installed.
    """
    start_program("txnlib.jobs.audit:job")
