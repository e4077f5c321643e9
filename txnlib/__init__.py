"""Finds hanging, late and stuck Kafka transactions from copies of the logs.

import txnlib

found = txnlib.audit("capture")
found.hanging.show()
print(found.explain("payments", 0, 24))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnlib.errors import (
    BusyError,
    ConfigError,
    MissingExtraError,
    OvertakenError,
    MissingTableError,
    StepError,
    TxnlibError,
    UnfinishedError,
    UnreadableInputError,
    UsageError,
)
from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.api import Audit, audit, diff, explain, open_audit, runs
    from txnlib.ask.episode import Episode

__all__ = [
    "audit",
    "open_audit",
    "explain",
    "runs",
    "diff",
    "Audit",
    "Episode",
    "TxnlibError",
    "UsageError",
    "ConfigError",
    "UnreadableInputError",
    "MissingTableError",
    "UnfinishedError",
    "StepError",
    "BusyError",
    "OvertakenError",
    "MissingExtraError",
    "__version__",
]


def __getattr__(name: str) -> object:
    """What notebooks call; imported when it is first asked for, so that `txn-audit` need not wait for PySpark.

    Raises MissingExtraError if the wheel was installed without the extra `spark`.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from txnlib import api
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"txnlib.{name}", (error.name or "").partition(".")[0], "spark") from error
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
