"""`--fail-on`: what makes an audit exit with code 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from txnlib.errors import UsageError
from txnlib.queries.run_result import URGENCY

#: All but OPEN, which needs no attention.
_ALARMS: Final = tuple(name for name in URGENCY if name != "OPEN")


def _has(kind: str, *names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda counts: any(counts.get(kind, {}).get(name, 0) for name in names)


#: What `--fail-on` may name -> whether the counts of a run (`Summary.counts`) have any of it.
CONDITIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    **{name.lower(): _has("verdicts", name) for name in _ALARMS},
    "new": _has("new", *_ALARMS),
    **{f"new-{name.lower()}": _has("new", name) for name in _ALARMS},
    "in-doubt": _has("in_doubt", "OVERDUE"),
    "critical": _has("findings", "CRITICAL"),
    "coverage": _has("coverage", "PARTIAL", "DAMAGED", "MISSING"),
}


def parse_fail_on(given: str | None) -> frozenset[str]:
    """The conditions that are named, separated by commas. Raises UsageError for others."""
    names = [name.strip().lower() for name in (given or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in CONDITIONS]
    if unknown:
        raise UsageError(f"--fail-on {','.join(unknown)}: expected some of {', '.join(CONDITIONS)}")
    return frozenset(names)


def is_failure(conditions: frozenset[str], counts: Mapping[str, Any]) -> bool:
    """Whether any of the conditions holds."""
    return any(CONDITIONS[name](counts) for name in conditions)
