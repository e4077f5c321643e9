"""Renders reference pages from the code: what they have between `rendered: NAME` and `end`, and all of api.md.

python docs/render.py          # rewrites them; a test fails while they are stale
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_type_hints

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import configuration  # noqa: E402
import schema_pages  # noqa: E402
from markdown_table import table  # noqa: E402

import txnlib  # noqa: E402
from txnlib import settings  # noqa: E402
from txnlib.ask.run_result import METRICS  # noqa: E402
from txnlib.core.copies import ROLES, End, Role, is_current  # noqa: E402
from txnlib.core.finding import Topic  # noqa: E402
from txnlib.core.findings.catalogue import FINDINGS  # noqa: E402
from txnlib.core.kafka.marker_acceptance import ACCEPTANCES, MarkerVersion  # noqa: E402
from txnlib.core.kafka.transaction_state import STEPS, TransactionState  # noqa: E402
from txnlib.core.verdicts.age import LATE_BY  # noqa: E402
from txnlib.core.verdicts.doubt import DOUBTS  # noqa: E402
from txnlib.core.verdicts.marker_states import (  # noqa: E402
    MARKER_STATES,
    MEANINGS,
    WHOLE_MEANINGS,
    WHOLE_OUTCOMES,
    DecisionState,
    MarkerEvidence,
)
from txnlib.core.verdicts.reason import (  # noqa: E402
    EXPLANATIONS,
    REASONS_OF_OTHERS,
    REASONS_OF_OWNER,
)
from txnlib.core.verdicts.world import AXIOMS  # noqa: E402

NOTE = "<!-- rendered by docs/render.py; do not edit -->\n"


def api() -> str:
    """What `import txnlib` offers, without types and exceptions: `help` has these."""
    head = inspect.getdoc(txnlib) or ""
    about, _, example = head.partition("\n\n")
    parts = [NOTE, "# The library\n", f"{about} `help(txnlib.audit)` also has types, and what is raised.\n"]
    parts.append(f"```python\n{textwrap.dedent(example)}\n```\n")
    offered = [name for name in txnlib.__all__ if not name.startswith("_")]
    for name in filter(str.islower, offered):
        function = getattr(txnlib, name)
        parts += [f"## txnlib.{name}\n", f"`{_call(name, function)}`\n", _prose(function)]
    for kind in (txnlib.Audit, txnlib.Story):
        rows = [
            (f"`{_call(name, member) if inspect.isfunction(member) else name}`", _paragraphs(member)[0])
            for name, member in vars(kind).items()
            if (isinstance(member, property) or inspect.isfunction(member)) and not name.startswith("_")
        ]
        parts += [f"## txnlib.{kind.__name__}\n", _prose(kind), *table(("member", "meaning"), rows)]
    errors = [getattr(txnlib, name) for name in offered if name.endswith("Error")]
    rows = [(f"`{error.__name__}`", str(error.exit_code.value), _paragraphs(error)[0]) for error in errors]
    about = "All are a `TxnlibError`; a `MissingExtraError` is an `ImportError`, too.\n"
    return "\n".join([*parts, "## Errors\n", about, *table(("error", "exit code of a job", "meaning"), rows)])


def _call(name: str, function: Callable[..., object]) -> str:
    """A call with the names and defaults of all parameters; of keyword arguments that a TypedDict types, each one."""
    words = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            typed = getattr(settings, each.annotation.removeprefix("Unpack[").rstrip("]"))
            words += [f"{key}=None" for key in get_type_hints(typed)]
        elif each.name != "self":
            if each.kind is each.KEYWORD_ONLY and "*" not in words:
                words.append("*")
            words.append(each.name if each.default is each.empty else f"{each.name}={each.default!r}")
    return f"{name}({', '.join(words)})"


def _paragraphs(thing: object) -> list[str]:
    """Those of a docstring, with links to the pages that it names, but not what is raised."""
    linked = re.sub(r"docs/([\w/]+\.md)", r"[\1](\1)", inspect.getdoc(thing) or "")
    kept = [text for text in linked.split("\n\n") if not text.startswith("Raises ")]
    return [text if "\n* " in text or text.startswith("* ") else " ".join(text.split()) for text in kept]


def _prose(thing: object) -> str:
    return "\n\n".join(_paragraphs(thing)) + "\n"


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
    return table(("state", *kinds), [row for row in rows if any(row[1:])])


def _standings() -> list[str]:
    rows = [(owner.value, "", "", f"`{reason.value}`") for owner, reason in REASONS_OF_OTHERS.items()]
    rows += [("CURRENT", holds.value, marker.value, f"`{r.value}`") for (holds, marker), r in REASONS_OF_OWNER.items()]
    return table(("the producer id's owner", "its last record", "marker", "reason"), rows)


def _lateness() -> list[str]:
    rows = [(str(written), str(started), "" if by is None else by.value) for (written, started), by in LATE_BY.items()]
    head = ("last write older than the brokers' limit", "coordinator's timeout passed", "late_by")
    return table(head, rows)


def _marker_states() -> list[str]:
    rows = [
        (f"**{decision}**", *(MARKER_STATES[decision, seen] for seen in MarkerEvidence)) for decision in DecisionState
    ]
    meanings = table(("marker", "meaning"), [(f"`{state}`", meaning) for state, meaning in MEANINGS.items()])
    return [*table(("", *MarkerEvidence), rows), *meanings]


def _outcomes() -> list[str]:
    rows = [
        (f"`{whole}`", ", ".join(sorted(states)), WHOLE_MEANINGS[whole]) for whole, states in WHOLE_OUTCOMES.items()
    ]
    return table(("outcome", "markers", "meaning"), rows)


def _markers() -> list[str]:
    """A row for each epoch and the brokers that answer alike."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for order, brokers in dict.fromkeys((order, brokers) for order, brokers, _ in ACCEPTANCES):
        cells = tuple(ACCEPTANCES[order, brokers, version].value for version in MarkerVersion)
        alike.setdefault((order.value, cells), []).append(brokers.value)
    rows = [(order, ", ".join(brokers), *cells) for (order, cells), brokers in alike.items()]
    return table(("epoch", "brokers", *(version.value for version in MarkerVersion)), rows)


def _copies() -> list[str]:
    rows = [
        (role.value, ROLES[role], *("CAPTURE" if is_current(role, end) else "NEWEST_STAMP" for end in End))
        for role in Role
    ]
    return table(("role", "what it is", *(end.value for end in End)), rows)


def _axioms() -> list[str]:
    """The premises of every history."""
    rows = ((f"`{name}`", each.says, each.gives) for name, each in AXIOMS.items())
    return table(("premise", "what holds", "what a world makes of it"), rows)


def _doubts() -> list[str]:
    order = ", ".join(f"`{reason.value}`" for reason, _ in DOUBTS)
    return [f"{order}.\n"]


def _reasons() -> list[str]:
    return table(("reason", "in words"), [(f"`{reason.value}`", text) for reason, text in EXPLANATIONS.items()])


def _findings() -> list[str]:
    lines = []
    for severity in sorted({each.severity for each in FINDINGS.values()}, reverse=True):
        rows = [(f"`{each.name}`", each.meaning) for each in FINDINGS.values() if each.severity is severity]
        lines += [f"### {severity.name}\n", *table(("name", "meaning"), rows)]
    return lines


def _advice() -> list[str]:
    return ["\n\n".join(_advice_of(topic) for topic in Topic) + "\n"]


def _advice_of(topic: Topic) -> str:
    entries: dict[str, list[str]] = {}
    for each in FINDINGS.values():
        if each.topic is topic:
            entries.setdefault(each.advice, []).append(each.name)
    lines = [f"### {topic}\n"]
    for advice, names in entries.items():
        bullet = f"* {', '.join(f'`{name}`' for name in names)}: {advice}"
        lines.append(textwrap.fill(bullet, 140, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
    return "\n".join(lines)


def _gauges() -> list[str]:
    rows = [
        (f"`{name}{{{','.join(each.labels)}}}`" if each.labels else f"`{name}`", each.about)
        for name, each in METRICS.items()
    ]
    return table(("gauge", "meaning"), rows)


BLOCKS = {
    **schema_pages.BLOCKS,
    **configuration.BLOCKS,
    "steps": _steps,
    "standings": _standings,
    "acceptances": _markers,
    "lateness": _lateness,
    "copies": _copies,
    "axioms": _axioms,
    "doubts": _doubts,
    "reasons": _reasons,
    "markers": _marker_states,
    "outcomes": _outcomes,
    "findings": _findings,
    "advice": _advice,
    "gauges": _gauges,
}
BLOCK = re.compile(r"(<!-- rendered: ([\w-]+) -->)\n.*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """A page with its blocks as the code has them."""

    def block(found: re.Match[str]) -> str:
        return "\n".join([found[1], "", *BLOCKS[found[2]](), found[3]])

    return BLOCK.sub(block, (DOCS / page).read_text())


PAGES = {
    "api.md": api,
    "../conf/audit.toml": configuration.settings_file,
    **{
        page: partial(filled, page)
        for page in (
            *("tables.md", "configuration.md", "numbers.md", "runbook.md"),
            *("rules/abort.md", "rules/reference.md"),
        )
    },
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render())
