"""The request for an audit, from a command line or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.errors import UsageError
from txnlib.settings import NUMBERS

FULL: Final = "full"
INCREMENTAL: Final = "incremental"
MODES: Final = (FULL, INCREMENTAL)
#: Larger numbers are not printed: Python refuses to print more than 4,300 digits.
_SHOWN: Final = 10**40


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """A request for an audit. None means: from the settings file, `capture.json` or Kafka's defaults, in this order."""

    input: tuple[str, ...] = ()
    output: str | None = None
    schema: str | None = None
    conf: str | None = None
    cluster: str | None = None
    as_of_ms: int | None = None
    #: When copying began, for copies whose instant nothing notes.
    captured_at_ms: int | None = None
    #: Numbers by `settings.Setting.argument`, in the units of the options.
    settings: Mapping[str, int | None] = field(default_factory=dict)
    mode: str = INCREMENTAL
    #: `embedded` or `spark`; None: Spark where somebody named one.
    engine: str | None = None
    follow_links: bool = False

    def __post_init__(self) -> None:
        check_number("--as-of ", self.as_of_ms, 0, LAST_INSTANT_MS)
        check_number("--captured-at ", self.captured_at_ms, 0, LAST_INSTANT_MS)
        for key, each in NUMBERS.items():
            check_number(f"{each.option} ", self.settings.get(key), each.least, each.most)
        if self.mode not in MODES:
            raise UsageError(f"--mode {self.mode}: expected {' or '.join(MODES)}")
        if self.output and self.schema:
            raise UsageError("--output and --schema are mutually exclusive")


def check_number(label: str, given: object, least: int, most: int) -> None:
    """Raises UsageError, with a message that begins with `label`, unless the value is None or a whole number within the
    limits."""
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if given is not None and not (is_whole and least <= given <= most):  # type: ignore[operator]
        shown = given if not is_whole or abs(given) < _SHOWN else "(a huge number)"  # type: ignore[arg-type]
        raise UsageError(f"{label}{shown}: expected a whole number from {least} to {most}")
