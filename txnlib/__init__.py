"""Finds hanging, late and stuck Kafka transactions from copies of the logs.

import txnlib

found = txnlib.audit("capture")
found.table("hanging_transactions").show()
print(txnlib.explain(found, "payments", 0, 24))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.api import Audit, audit, explain, judge, open_audit

__all__ = ["Audit", "__version__", "audit", "explain", "judge", "open_audit"]


def __getattr__(name: str) -> object:
    """What notebooks call; imported when it is first asked for, so that `txn-audit` need not wait for PySpark."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from txnlib import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
