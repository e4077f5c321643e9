"""Renders the reference pages from the code.

python docs/render.py          # rewrites them; a test fails while they are stale
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection
from pathlib import Path
from typing import get_type_hints

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

from configuration import configuration, settings_file  # noqa: E402
from markdown_table import table  # noqa: E402
from schema_pages import tables, workings  # noqa: E402

import txnlib  # noqa: E402
from txnlib import settings  # noqa: E402
from txnlib.ask.run_result import METRICS, SHOWN_TRANSACTIONS  # noqa: E402
from txnlib.core.copies import ROLES, End, Role, is_current  # noqa: E402
from txnlib.core.finding_catalogue import FINDINGS, Topic  # noqa: E402
from txnlib.core.kafka.coordinator_partition import CountBasis  # noqa: E402
from txnlib.core.kafka.marker_acceptance import ACCEPTANCES, MarkerVersion  # noqa: E402
from txnlib.core.kafka.transaction_state import STEPS, TransactionState  # noqa: E402
from txnlib.core.verdicts.doubt import (  # noqa: E402
    DOUBTS,
    LATE_BY,
)
from txnlib.core.verdicts.reason import (  # noqa: E402
    EXPLANATIONS,
    REASONS_OF_OTHERS,
    REASONS_OF_OWNER,
)
from txnlib.core.verdicts.transaction_outcome import (  # noqa: E402
    MARKER_STATES,
    MEANINGS,
    WHOLE_MEANINGS,
    WHOLE_OUTCOMES,
    DecisionState,
    MarkerEvidence,
)

NOTE = "<!-- rendered by docs/render.py; do not edit -->\n"


def api() -> str:
    """Signature and docstring of all that `import txnlib` offers."""
    head = inspect.getdoc(txnlib) or ""
    about, _, example = head.partition("\n\n")
    parts = [NOTE, "# The library\n", f"{about}\n", f"```python\n{textwrap.dedent(example)}\n```\n"]
    offered = [name for name in txnlib.__all__ if not name.startswith("_")]
    for name in filter(str.islower, offered):
        parts += _described(f"txnlib.{name}", getattr(txnlib, name))
    for kind in (txnlib.Audit, txnlib.Episode):
        parts += [f"## txnlib.{kind.__name__}\n", _prose(kind)]
        for name, member in vars(kind).items():
            if isinstance(member, property) and not name.startswith("_"):
                returned = inspect.signature(member.fget).return_annotation
                parts.append(f"### {name}\n\n`{name}: {returned}`: {_prose(member)}")
            elif inspect.isfunction(member) and not name.startswith("_"):
                parts += _described(name, member, "###")
    errors = [getattr(txnlib, name) for name in offered if name.endswith("Error")]
    rows = [(f"`txnlib.{error.__name__}`", str(error.exit_code.value), _title(error)) for error in errors]
    about = "All are a `txnlib.TxnlibError`; a `MissingExtraError` is an `ImportError`, too.\n"
    return "\n".join([*parts, "## Errors\n", about, *table(("error", "exit code of a job", "meaning"), rows)])


def _title(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _described(name: str, function: Callable[..., object], heading: str = "##") -> list[str]:
    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    lines = [line for parameter in kept for line in _parameters(parameter)]
    first = next((place for place, parameter in enumerate(kept) if parameter.kind is parameter.KEYWORD_ONLY), None)
    if first is not None:
        lines.insert(first, "*")
    called = f"({', '.join(lines)})" if len(lines) < 5 else "".join(["(", *[f"\n    {line}," for line in lines], "\n)"])
    short = name.removeprefix("txnlib.")
    return [f"{heading} {name}\n", f"```\n{short}{called} -> {signature.return_annotation}\n```\n", _prose(function)]


def _parameters(parameter: inspect.Parameter) -> list[str]:
    """A parameter with its type; for keyword arguments that a TypedDict types, each of them."""
    if parameter.kind is parameter.VAR_KEYWORD:
        typed = getattr(settings, parameter.annotation.removeprefix("Unpack[").rstrip("]"))
        return [f"{name}: {kind} = None" for name, kind in get_type_hints(typed).items()]
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return [f"{parameter.name}: {parameter.annotation}{default}"]


def _prose(thing: object) -> str:
    """A docstring, with links to the pages that it names."""
    linked = re.sub(r"docs/([\w/]+\.md)", r"[\1](\1)", inspect.getdoc(thing) or "")
    return f"{linked}\n"


def rules() -> str:
    parts = (_steps, _standings, _markers, _lateness, _copies, _counts, _doubts, _reasons, _outcomes, _findings)
    return "\n".join([NOTE, "# Reference of rules\n", *[line for part in parts for line in part()]])


def _name(state: TransactionState | None) -> str:
    return "none" if state is None else state.kafka_name


def _steps() -> list[str]:
    states = [None, *TransactionState]
    kinds = list(dict.fromkeys(STEPS[before, after].name for before in states for after in states))
    kinds.remove("ILLEGAL")
    rows = [
        (
            _name(before),
            *(", ".join(_name(after) for after in states if STEPS[before, after].name == kind) for kind in kinds),
        )
        for before in states
    ]
    return [
        "## Steps between two consecutive records of a transactional id\n",
        (
            "Each row: a state, and the states after it. All other steps are illegal. `none` is no record, or a"
            " tombstone.\n"
        ),
        *table(("state", *kinds), [row for row in rows if any(row[1:])]),
    ]


def _standings() -> list[str]:
    rows = [(owner.value, "", "", f"`{reason.value}`") for owner, reason in REASONS_OF_OTHERS.items()]
    rows += [("CURRENT", holds.value, marker.value, f"`{r.value}`") for (holds, marker), r in REASONS_OF_OWNER.items()]
    return [
        "## Reasons by the state of an open transaction\n",
        *table(("the producer id's owner", "its last record", "marker", "reason"), rows),
    ]


def _lateness() -> list[str]:
    rows = [(str(written), str(started), "" if by is None else by.value) for (written, started), by in LATE_BY.items()]
    head = ("last write older than the brokers' limit", "coordinator's timeout passed", "late_by")
    return ["## Lateness of an expected transaction\n", *table(head, rows)]


def _outcomes() -> list[str]:
    markers = [
        (f"**{decision}**", *(MARKER_STATES[decision, seen] for seen in MarkerEvidence)) for decision in DecisionState
    ]
    wholes = [
        (f"`{whole}`", ", ".join(sorted(states)), WHOLE_MEANINGS[whole]) for whole, states in WHOLE_OUTCOMES.items()
    ]
    return [
        "## Marker of a transaction on one partition\n",
        "Rows: what the coordinator's log says. Columns: what the copy of the partition shows.\n",
        *table(("", *MarkerEvidence), markers),
        *table(("marker", "meaning"), [(f"`{state}`", meaning) for state, meaning in MEANINGS.items()]),
        "## Outcome of a whole transaction\n",
        "The first that applies: one partition with any of these markers is enough.\n",
        *table(("outcome", "markers", "meaning"), wholes),
    ]


def _markers() -> list[str]:
    """A row for each epoch and the brokers that answer alike."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for order, brokers in dict.fromkeys((order, brokers) for order, brokers, _ in ACCEPTANCES):
        cells = tuple(ACCEPTANCES[order, brokers, version].value for version in MarkerVersion)
        alike.setdefault((order.value, cells), []).append(brokers.value)
    rows = [(order, ", ".join(brokers), *cells) for (order, cells), brokers in alike.items()]
    return [
        "## Which markers a partition accepts\n",
        "By the marker's version, and by its epoch, compared with the epoch that the partition has seen.\n",
        *table(("epoch", "brokers", *(version.value for version in MarkerVersion)), rows),
    ]


def _copies() -> list[str]:
    rows = [
        (role.value, ROLES[role], *("CAPTURE" if is_current(role, end) else "NEWEST_STAMP" for end in End))
        for role in Role
    ]
    return [
        "## Instants up to which copies are known\n",
        (
            "`CAPTURE`: the copy is current, and known up to the instant at which it was taken. `NEWEST_STAMP`: the"
            " copy is known up to its newest broker-stamped record.\n"
        ),
        *table(("role", "what it is", *(end.value for end in End)), rows),
    ]


#: How the number of coordinator partitions is known -> what that means.
_BASES = {
    CountBasis.GIVEN: "an option, the settings file, capture.json or the cluster's metadata log contains it",
    CountBasis.DEFAULT: (
        "Kafka's default of 50, which no captured id refutes; partitions that were not captured are missing"
    ),
    CountBasis.ASSUMED: "the ids refute 50, and allow one number up to 1,000; no abort that depends on it is safe",
    CountBasis.AMBIGUOUS: (
        "the ids refute 50, and allow several; a transaction whose producer id no coordinator knows is UNKNOWN"
    ),
}


def _counts() -> list[str]:
    return [
        "## Number of coordinator partitions\n",
        *table(("basis", "meaning"), [(basis.value, _BASES[basis]) for basis in CountBasis]),
    ]


def _doubts() -> list[str]:
    order = ", ".join(f"`{reason.value}`" for reason, _ in DOUBTS)
    return ["## Reasons for UNKNOWN, in order of precedence\n", f"{order}. The next section has their texts.\n"]


def _reasons() -> list[str]:
    return [
        "## Reasons\n",
        *table(("reason", "in words"), [(f"`{reason.value}`", text) for reason, text in EXPLANATIONS.items()]),
    ]


#: From a page in a folder below.
RUNBOOK = f"[Runbook]({Path('..') / 'runbook.md'}#findings)"


def _findings() -> list[str]:
    lines = ["## Findings\n", f"What to do: {RUNBOOK}.\n"]
    for severity in sorted({rule.severity for rule in FINDINGS.values()}, reverse=True):
        rows = [(f"`{finding.name}`", rule.meaning) for finding, rule in FINDINGS.items() if rule.severity is severity]
        lines += [f"### {severity.name}\n", *table(("name", "meaning"), rows)]
    return lines


def runbook() -> str:
    """The runbook: verdicts as they are written there, and findings from the catalogue."""
    page = (DOCS / "runbook.md").read_text()
    written = page[: page.index(f"### {next(iter(Topic))}")]
    return written + "\n\n".join(_advice_of(topic) for topic in Topic) + "\n"


def _advice_of(topic: Topic) -> str:
    entries: dict[str, list[str]] = {}
    for finding, rule in FINDINGS.items():
        if rule.topic is topic:
            entries.setdefault(rule.advice, []).append(finding.name)
    lines = [f"### {topic}\n"]
    for advice, names in entries.items():
        bullet = f"* {', '.join(f'`{name}`' for name in names)}: {advice}"
        lines.append(textwrap.fill(bullet, 140, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
    return "\n".join(lines)


NUMBERS = """# Numbers

What `audit` and `report_transactions` write for programs. A run that fails has the gauges that begin with
`txnlib_audit_`, as far as they are known, and JSON with `error` in place of `found`.

## `--metrics FILE.prom`

Gauges for node_exporter's textfile collector, each also with the label `cluster`.
"""
JSON = """## `--summary FILE.json`

One JSON object; `-` writes it to stdout, in place of the report. Instants are ISO-8601. `found` has the results; its
`verdicts` count a transaction on each of its partitions, `transactions_by_verdict` once. Fields that are no gauge:
"""
FIELDS = {
    "schema_version": "Changes if a field is renamed or removed, or changes its meaning.",
    "as_of_basis": "Source of `as_of`.",
    "tables": "Location of the tables.",
    "answer": "The first lines of the report.",
    "transactions": f"The {SHOWN_TRANSACTIONS} most urgent [rows](tables.md#open_transactions), with `acknowledged_by`.",
    "transactions_left_out": "Number of the others.",
    "ended": "The first [ended_transactions](workings.md#ended_transactions).",
    "acknowledged": "[Entries](configuration.md#acknowledgements): how many rows each `matches`, and whether it `is_over`.",
    "named_findings": "Findings above INFO, by name.",
}


def numbers() -> str:
    gauges = [(f"`{name}{_labels(each.labels)}`", each.about) for name, each in METRICS.items()]
    fields = [(f"`{name}`", about) for name, about in FIELDS.items()]
    return "\n".join([NOTE, NUMBERS, *table(("gauge", "meaning"), gauges), JSON, *table(("field", "meaning"), fields)])


def _labels(names: Collection[str]) -> str:
    return f"{{{','.join(names)}}}" if names else ""


PAGES = {
    "tables.md": lambda: f"{NOTE}\n{tables()}",
    "workings.md": lambda: f"{NOTE}\n{workings()}",
    "api.md": api,
    "configuration.md": lambda: f"{NOTE}\n{configuration()}",
    "../conf/audit.toml": settings_file,
    "numbers.md": numbers,
    "rules/reference.md": rules,
    "runbook.md": runbook,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render())
