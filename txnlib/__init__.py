"""Finds hanging, late and stuck Kafka transactions from copies of the logs.

import txnlib

found = txnlib.audit("capture")
found.hanging.show()
print(found.explain("payments", 0, 24))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnlib.errors import MissingPackageError
from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.api import Audit, audit, diff, explain, judge, open_audit, runs

__all__ = ["Audit", "__version__", "audit", "diff", "explain", "judge", "open_audit", "runs"]


def __getattr__(name: str) -> object:
    """What notebooks call; imported when it is first asked for, so that `txn-audit` need not wait for PySpark.

    Raises MissingPackageError if the wheel was installed without the extra `spark`.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from txnlib import api
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"txnlib.{name}", error.name or "") from error
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
