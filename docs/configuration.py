"""The page configuration.md: settings, options, capture.json and environment variables, each from the one place that
has it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from markdown_table import table
from pydantic import BaseModel

from txnlib.ask.acknowledgements import Acknowledgement
from txnlib.jobs.options import AUDIT, INGEST, OPTIONS, RECONSTRUCT, REPORT, Option
from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.settings import KEYS, NUMBERS, SECTIONS, SETTINGS

ROOT = Path(__file__).resolve().parent.parent
JOBS = (AUDIT, INGEST, RECONSTRUCT, REPORT)
HEAD = """\
# Configuration

An audit needs only `--input` and `--output`. Everything else has a default.

## Precedence

The first source that has a setting decides:

1. An option of the command line; in a notebook, an argument of [`audit`](api.md).
1. The settings file, `--conf FILE`, in TOML. [conf/audit.toml](../conf/audit.toml) names every key. What is wrong in it is an error
   (exit code 2) that names file and key.
1. `capture.json` in the capture. Unknown fields are ignored.
1. The cluster's metadata log, if the setting is dynamic; else Kafka's default.

The instant of the audit is no setting: it is `--as-of`, else the newest instant in `capture.json`, else the newest broker-stamped
time in the capture.
"""


SETTINGS_FILE = """\
# Settings of an audit: `--conf conf/audit.toml`. Every key is optional. Options on the command line override this file,
# which overrides capture.json, which overrides the defaults shown here. docs/configuration.md says more of each.
"""

ACKNOWLEDGEMENTS = """\
### Acknowledgements

What an entry of `--acknowledged FILE.toml` matches does not count for `--fail-on`, and moves to the section `ACKNOWLEDGED` of
the report; so does an entry that has ended or matches nothing. Counts, tables, metrics and the abort plan still have it.

```toml
[[acknowledged]]
topic = "payments"
partition = 0
start_offset = 24
until = 2026-12-01T08:00:00Z
by = "ada"
why = "the owner of payments-batch compares both systems first"

[[acknowledged]]
finding = "MARKER_MISSING"
topic = "audit-trail"
until = 2026-12-24
by = "ada"
why = "the topic is deleted in December"
```

An entry names at least one of topic, transactional id, producer id, start offset and finding, and matches what has all that it
names.
"""


OTHER_OPTIONS = """\
`audit` and `ingest_dumps` also take the options of [settings](#settings-file). `--master URL`, and all after `--`, goes to
spark-submit ([on a cluster](operations.md#on-a-cluster)). [txn-audit](cli.md) has its own options.

`--fail-on` takes verdicts (`hanging`, `stuck`, `late`, `suspect`, `unknown`), any or one of these on a transaction that no audit
saw before (`new`, `new-hanging`, …), `in-doubt`, `critical` findings, and `coverage` that is not complete.
"""


def configuration() -> str:
    return "\n".join([HEAD, *_keys(), *_options(), *_acknowledgements(), *_notes(), *_decided(), *_environment()])


def settings_file() -> str:
    """conf/audit.toml: every key with its default, commented out."""
    lines = [SETTINGS_FILE]
    for section in SECTIONS:
        lines.append(f"[{section}]")
        for each in (SETTINGS[name] for name in KEYS.values() if SETTINGS[name].section == section):
            lines += textwrap.wrap(
                each.decides.partition(". ")[0].rstrip(".") + ".", 118, initial_indent="# ", subsequent_indent="# "
            )
            lines += [f"# {each.name} = {each.example or f'{each.default // each.unit:_}'}", ""]
    return "\n".join(lines)


def _keys() -> list[str]:
    lines = [
        "## Settings file\n",
        (
            "Numbers are integers up to 2_147_483_647. `also`: the option, and the field of"
            " [capture.json](#notes-of-a-capture).\n"
        ),
    ]
    for section, about in SECTIONS.items():
        names = [name for name in KEYS.values() if SETTINGS[name].section == section]
        lines += [f"### [{section}]\n", f"{about}\n", *table(("key", "default", "decides", "also"), map(_key, names))]
    return lines


def _key(name: str) -> tuple[str, str, str, str]:
    each = SETTINGS[name]
    noted = name if each.noted else "broker_settings" if hasattr(CaptureNotes, name) else ""
    return (
        f"`{each.name}`",
        default(name),
        each.decides,
        ", ".join(f"`{said}`" for said in (each.option, noted) if said),
    )


def default(name: str) -> str:
    """What holds where nobody says anything, in the unit of the key."""
    each = SETTINGS[name]
    if isinstance(each.default, int):
        return f"`{each.default // each.unit:_}`"
    return each.without.rstrip(".") if each.noted else "none"


def _options() -> list[str]:
    """Without the options that are settings, by the jobs that take them."""
    settings = {each.option for each in NUMBERS.values()}
    by_jobs: dict[frozenset[str], list[Option]] = {}
    for option in OPTIONS:
        if option.name not in settings:
            by_jobs.setdefault(option.jobs, []).append(option)
    rows = [
        (", ".join(f"`{job}`" for job in JOBS if job in jobs), ", ".join(f"`{_called(option)}`" for option in options))
        for jobs, options in by_jobs.items()
    ]
    return [
        "## Options of the jobs\n",
        "`./spark-submit.sh JOB --help` describes them. The three jobs after `audit` are its stages.\n",
        *table(("jobs", "options"), rows),
        OTHER_OPTIONS,
    ]


def _called(option: Option) -> str:
    value = option.how.get("metavar") or "|".join(option.how.get("choices", ()))
    return f"{option.name} {value}".strip()


def _acknowledgements() -> list[str]:
    fields = [(f"`{name}`", field.description) for name, field in Acknowledgement.model_fields.items()]
    return [ACKNOWLEDGEMENTS, *table(("key", "meaning"), fields)]


def _notes() -> list[str]:
    return [
        "## Notes of a capture\n",
        "`capture.json` is in each broker's folder, or there is one for all; an audit merges them.",
        "[`scripts/capture.sh`](capture.md) writes it. Every field is optional; numbers are integers.\n",
        *_noted(CaptureNotes),
        "Fields of each partition in `partitions`:\n",
        *_noted(PartitionNotes),
    ]


def _noted(model: type[BaseModel]) -> list[str]:
    rows = [
        (f"`{name}`", f"{said['description']}{_composed(said)}", said["without"])
        for name, said in _properties(model).items()
    ]
    return table(("field", "meaning", "without it"), rows)


def _composed(said: dict[str, Any]) -> str:
    """The type of a field, unless it is a number or a text."""
    kind = _kind(said)
    return "" if kind in ("integer", "text") else f" *{kind}*"


def _decided() -> list[str]:
    return [
        "## Effective settings of an audit\n",
        (
            "The JSON in `settings` of [audit_runs](tables.md#audit_runs), and `settings` in [the"
            " library](api.md#settings): the"
        ),
        "settings above, times in ms, and what was decided besides. `txnlib/settings.py` describes its fields.\n",
    ]


def _properties(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _kind(said: dict[str, Any]) -> str:
    """A type in words."""
    if "anyOf" in said:
        (said,) = [each for each in said["anyOf"] if each != {"type": "null"}]
    if "items" in said:
        return f"list of {_kind(said['items'])}"
    if "additionalProperties" in said:
        return f"object of {_kind(said['additionalProperties'])}"
    if "$ref" in said:
        return "object"
    return "text" if said["type"] == "string" else said["type"]


def _environment() -> list[str]:
    """As the headers of the two scripts have it."""
    submit = [
        (f"`{name}`", "" if value == "-" else value, meaning)
        for name, value, meaning in _header("spark-submit.sh", "Environment variable", 3)
    ]
    installs = [(_ticked(names), meaning) for names, meaning in _header("bootstrap.sh", "Variables it reads", 2)]
    return [
        "## Environment variables\n",
        "Those of stores are in [Operations](operations.md#where-a-capture-may-lie).\n",
        "### spark-submit.sh\n",
        *table(("variable", "default", "meaning"), submit),
        "### bootstrap.sh\n",
        "Both entry scripts use these when they install packages.\n",
        *table(("variable", "meaning"), installs),
    ]


def _ticked(names: str) -> str:
    return re.sub(r"\w+", lambda match: f"`{match[0]}`", names)


def _header(script: str, title: str, columns: int) -> list[list[str]]:
    """Rows of the table below a title in a script's header; lines without so many columns are left out."""
    _, _, below = (ROOT / script).read_text().partition(f"# {title}")
    rows = []
    for line in below.splitlines()[1:]:
        if not line.startswith("#   "):
            break
        rows.append(re.split(r" {2,}", line.removeprefix("#").strip(), maxsplit=columns - 1))
    return [row for row in rows if len(row) == columns]
