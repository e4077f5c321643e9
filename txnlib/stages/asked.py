"""What can be asked of an audit? The same of a command line and of a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnlib.errors import UsageError
from txnlib.readers.start import BEGINNING

FULL: Final = "full"
INCREMENTAL: Final = "incremental"
MODES: Final = (FULL, INCREMENTAL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What whoever wants an audit says about it; None: see the settings file, `capture.json`, Kafka's defaults, in this order."""

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

    def __post_init__(self) -> None:
        if self.mode == INCREMENTAL and self.start != BEGINNING:
            raise UsageError(f"--mode {INCREMENTAL} goes on from the last audit: leave out --start {self.start}")
        if self.output and self.schema:
            raise UsageError("--output and --schema exclude each other")
