"""The request for an audit, from a command line or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.core.kafka.constants import MAX_COORDINATOR_PARTITIONS, MAX_INT32
from txnlib.errors import UsageError
from txnlib.readers.snapshot_start import BEGINNING

FULL: Final = "full"
INCREMENTAL: Final = "incremental"
MODES: Final = (FULL, INCREMENTAL)
#: Larger numbers are not printed: Python refuses to print more than 4,300 digits.
_SHOWN: Final = 10**40

#: The valid range of each number, by its name in `Asked`.
LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "as_of_ms": (0, LAST_INSTANT_MS),
    "max_transaction_timeout": (0, MAX_INT32),
    "transaction_max_timeout_ms": (0, MAX_INT32),
    "stuck_after": (0, MAX_INT32),
    "coordinator_partitions": (1, MAX_COORDINATOR_PARTITIONS),
    "keep_days": (1, MAX_INT32),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an audit. None means: from the settings file, `capture.json` or Kafka's defaults, in this order."""

    input: tuple[str, ...] = ()
    output: str | None = None
    schema: str | None = None
    conf: str | None = None
    cluster: str | None = None
    as_of_ms: int | None = None
    max_transaction_timeout: int | None = None
    transaction_max_timeout_ms: int | None = None
    stuck_after: int | None = None
    coordinator_partitions: int | None = None
    start: str = BEGINNING
    mode: str = FULL
    follow_links: bool = False

    def __post_init__(self) -> None:
        for name in LIMITS:
            option = "--as-of" if name == "as_of_ms" else f"--{name.replace('_', '-')}"
            check_number(name, getattr(self, name, None), f"{option} ")
        if self.mode == INCREMENTAL and self.start != BEGINNING:
            raise UsageError(f"--mode {INCREMENTAL} resumes from the last audit: leave out --start {self.start}")
        if self.output and self.schema:
            raise UsageError("--output and --schema are mutually exclusive")


def check_number(name: str, given: object, label: str) -> None:
    """Raises UsageError, with a message that begins with `label`, unless the value is None or a whole number within its limits."""
    least, most = LIMITS[name]
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if given is not None and not (is_whole and least <= given <= most):  # type: ignore[operator]
        shown = given if not is_whole or abs(given) < _SHOWN else "(a huge number)"  # type: ignore[arg-type]
        raise UsageError(f"{label}{shown}: expected a whole number from {least} to {most}")
