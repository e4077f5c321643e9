"""The conditions of `--fail-on`, and the exit code of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from txnlib.ask.report import Report
from txnlib.errors import ExitCode, UsageError

_ALARMS: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN")
#: Counts of what was given and not read: like UNKNOWN transactions, it has no verdict.
_NOT_READ: Final = {
    "FILES": "{} files not read, or not to their end",
    "PARTITIONS": "{} partitions read in part",
}
#: Condition -> kind of count (`Report.counts`) -> name of a count that meets the condition if it is not 0 -> that count
#: in words.
CONDITIONS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    **{name.lower(): {"verdicts": {name: f"{{}} {name}"}} for name in _ALARMS},
    "stuck": {"verdicts": {"STUCK": "{} STUCK"}, "ids": {"STUCK": "{} ids stuck without holding a partition"}},
    "unknown": {"verdicts": {"UNKNOWN": "{} UNKNOWN"}, "unread": _NOT_READ},
    "new": {"new": {name: f"{{}} new {name}" for name in _ALARMS}},
    **{f"new-{name.lower()}": {"new": {name: f"{{}} new {name}"}} for name in _ALARMS},
    **{f"holding-{name.lower()}": {"holding": {name: f"{{}} partitions held by {name}"}} for name in _ALARMS},
    "in-doubt": {"in_doubt": {"OVERDUE": "{} two-phase commits in doubt for too long"}},
    "critical": {"findings": {"CRITICAL": "{} findings CRITICAL"}},
    "coverage": {
        "coverage": {name: f"{{}} copies {name}" for name in ("PARTIAL", "DAMAGED", "MISSING")},
        "unread": _NOT_READ,
    },
}


def parse_fail_on(given: str | None) -> frozenset[str]:
    """The conditions in a list separated by commas. Raises UsageError for an unknown one."""
    names = [name.strip().lower() for name in (given or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in CONDITIONS]
    if unknown:
        raise UsageError(f"--fail-on {','.join(unknown)}: expected some of {', '.join(CONDITIONS)}")
    return frozenset(names)


def matches(conditions: Iterable[str], counts: Mapping[str, Any]) -> list[str]:
    """The counts of a run that meet any of the conditions, in words; empty if none does."""
    given = {*conditions}
    wanted = (counted for condition, counted in CONDITIONS.items() if condition in given)
    found = (
        words.format(number)
        for kinds in wanted
        for kind, names in kinds.items()
        for name, words in names.items()
        if (number := counts.get(kind, {}).get(name, 0))
    )
    return list(dict.fromkeys(found))


def exit_code(conditions: Iterable[str], report: Report) -> tuple[ExitCode, list[str]]:
    """The exit code of an audit with this report, and the counts that led to it, in words. What is acknowledged does
    not count."""
    remaining = report.counts if report.known is None else report.known.remaining(report.counts)
    matched = matches(conditions, remaining)
    return ExitCode.MATCHED if matched else ExitCode.DONE, matched
