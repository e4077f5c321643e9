"""Finds hanging, late and stuck Kafka transactions from copies of the logs.

import txnlib

found = txnlib.audit("capture")
found.hanging.show()
print(found.explain("payments", 0, 24))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from txnlib.errors import (
    ConfigError,
    DamagedTableError,
    EngineError,
    MissingExtraError,
    MissingTableError,
    OtherSchemaError,
    StepError,
    TxnlibError,
    UnfinishedError,
    UnreadableInputError,
    UsageError,
)
from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.api import Audit, diff, explain, open_audit
    from txnlib.ask.arrow_tables import read
    from txnlib.ask.story import Story
    from txnlib.auditing import audit, runs

__all__ = [
    "audit",
    "open_audit",
    "read",
    "explain",
    "runs",
    "diff",
    "Audit",
    "Story",
    "TxnlibError",
    "UsageError",
    "ConfigError",
    "UnreadableInputError",
    "MissingTableError",
    "OtherSchemaError",
    "DamagedTableError",
    "UnfinishedError",
    "StepError",
    "EngineError",
    "MissingExtraError",
    "__version__",
]


#: Names that are not of `txnlib.api` -> their modules.
_OTHERS: Final = {
    "read": "ask.arrow_tables",
    "Story": "ask.story",
    "audit": "auditing",
    "runs": "auditing",
}


def __getattr__(name: str) -> object:
    """What notebooks call; imported when it is first asked for: most of it needs no PySpark.

    Raises MissingExtraError if it does, and the wheel was installed without an extra that audits.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"txnlib.{_OTHERS.get(name, 'api')}"), name)
    except ModuleNotFoundError as error:
        from txnlib.engine.choice import missing_extra

        raise missing_extra(f"txnlib.{name}", error) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
