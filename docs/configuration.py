"""The page configuration.md: settings, options, capture.json and environment variables, each from the one place that has it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from txnlib.ask.acknowledgements import Acknowledgement
from txnlib.jobs.options import AUDIT, INGEST, OPTIONS, RECONSTRUCT, REPORT, Option
from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.settings import KEYS, SECTIONS, SETTINGS, Settings, SettingsFile

ROOT = Path(__file__).resolve().parent.parent
JOBS = (AUDIT, INGEST, RECONSTRUCT, REPORT)
HEAD = """\
# Configuration

An audit needs only `--input` and `--output`. Everything else has a default.

## Precedence

The first source that has a setting decides:

1. An option on the command line; in a notebook, an argument of [`audit`](api.md).
1. The settings file, `--conf FILE`, in TOML. [conf/audit.toml](../conf/audit.toml) names every key. An unknown key, a wrong type
   or a value out of range is an error (exit code 2); the message names the file and the key.
1. `capture.json` in the capture. Fields that this version does not know are ignored.
1. The default. If Kafka has the setting, it is Kafka's default.

`audit_runs.settings` contains the resulting settings, which `reconstruct_state` and `report_transactions` read from there. The
instant of the audit is not a setting: it is `--as-of`, else the newest instant in `capture.json`, else the newest broker-stamped
time in the capture.
"""

SETTINGS_FILE = """\
# Settings of an audit: `--conf conf/audit.toml`. Every key is optional. Options on the command line override this file,
# which overrides capture.json, which overrides the defaults shown here. docs/configuration.md says more of each.
"""

ACKNOWLEDGEMENTS = """\
### Acknowledgements

`--acknowledged FILE.toml` names what is known. What an entry matches does not count for `--fail-on`, and moves from its section
of the report to the section `ACKNOWLEDGED`. The counts of the report, the tables, the metrics and the abort plan still have it. An
entry that has ended, or that matches nothing, is shown there, too.

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

An entry names at least one of topic, transactional id, producer id, start offset and finding. It matches what has all that it
names.
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
    lines = ["## Settings file\n"]
    for section, about in SECTIONS.items():
        lines += [f"### [{section}]\n", f"{about}\n"]
        lines += ["| key | type | default | decides | option | `capture.json` |", "|---|---|---|---|---|---|"]
        kinds = _properties(SettingsFile.model_fields[section].annotation)
        for name in (name for name in KEYS.values() if SETTINGS[name].section == section):
            each = SETTINGS[name]
            noted = name if each.noted else "broker_settings" if hasattr(CaptureNotes, name) else ""
            also = " | ".join(f"`{said}`" if said else "" for said in (each.option, noted))
            lines.append(f"| `{each.name}` | {_kind(kinds[each.name])} | {default(name)} | {each.decides} | {also} |")
        lines.append("")
    return lines


def default(name: str) -> str:
    """What holds where nobody says anything, in the unit of the key."""
    each = SETTINGS[name]
    if each.noted:
        return each.without.rstrip(".")
    return f"`{each.default // each.unit:_}`" if isinstance(each.default, int) else "none"


def _options() -> list[str]:
    lines = [
        "## Options of the jobs\n",
        "Options of `./spark-submit.sh JOB`. `x`: the job has the option. The three jobs after `audit` are its stages.\n",
        f"| option | {' | '.join(f'`{job}`' for job in JOBS)} | meaning |",
        "|---" * (len(JOBS) + 2) + "|",
    ]
    for option in OPTIONS:
        taken = " | ".join("x" if job in option.jobs else "" for job in JOBS)
        lines.append(f"| `{_called(option)}` | {taken} | {option.about} |")
    more = "`--master URL` and all options after `--` go to spark-submit: [on a cluster](operations.md#on-a-cluster)."
    return [*lines, "", more, "The commands of `txn-audit` have their own options: [txn-audit](cli.md).\n"]


def _called(option: Option) -> str:
    value = option.how.get("metavar") or "|".join(option.how.get("choices", ()))
    return f"{option.name} {value}".strip().replace("|", "\\|")


def _acknowledgements() -> list[str]:
    fields = [f"| `{name}` | {field.description} |" for name, field in Acknowledgement.model_fields.items()]
    return [ACKNOWLEDGEMENTS, "| key | meaning |", "|---|---|", *fields, ""]


def _notes() -> list[str]:
    lines = [
        "## Notes of a capture\n",
        "There can be one `capture.json` in each broker's folder, or one for all; [`scripts/capture.sh`](capture.md) writes it.",
        "An audit merges the files of its input. Every field is optional.\n",
        *_noted(CaptureNotes),
        "\nFields of each partition in `partitions`:\n",
        *_noted(PartitionNotes),
    ]
    return [*lines, ""]


def _noted(model: type[BaseModel]) -> list[str]:
    lines = ["| field | type | meaning | without it |", "|---|---|---|---|"]
    for name, said in _properties(model).items():
        lines.append(f"| `{name}` | {_kind(said)} | {said['description']} | {said['without']} |")
    return lines


def _decided() -> list[str]:
    lines = [
        "## Effective settings of an audit\n",
        "The JSON in `settings` of [audit_runs](tables.md#audit_runs), and `settings` in [the library](api.md#settings).\n",
        "| field | type | meaning |",
        "|---|---|---|",
    ]
    for name, said in _properties(Settings).items():
        about = f"`{SETTINGS[name].key}` of the settings file." if name in SETTINGS else said["description"]
        lines.append(f"| `{name}` | {_kind(said)} | {about} |")
    return [*lines, ""]


def _properties(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _kind(said: dict[str, Any]) -> str:
    """A type in words, with its limits."""
    if "anyOf" in said:
        (said,) = [each for each in said["anyOf"] if each != {"type": "null"}]
    if "items" in said:
        return f"list of {_kind(said['items'])}"
    if "additionalProperties" in said:
        return f"object: name to {_kind(said['additionalProperties'])}"
    if "$ref" in said:
        return "object"
    limits = [f"{word} {said[limit]:_}" for limit, word in (("minimum", "from"), ("maximum", "to")) if limit in said]
    return " ".join(["text" if said["type"] == "string" else said["type"], *limits])


def _environment() -> list[str]:
    """As the headers of the two scripts have it."""
    lines = [
        "## Environment variables\n",
        "[Operations](operations.md#where-a-capture-may-lie) lists the variables of stores (`AWS_…`, `AZURE_…`,",
        "`GOOGLE_APPLICATION_CREDENTIALS`, `HADOOP_HOME`).\n",
        "### spark-submit.sh\n",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, value, meaning in _header("spark-submit.sh", "Environment variable", 3):
        lines.append(f"| `{name}` | {'' if value == '-' else value} | {meaning} |")
    lines += [
        "\n### bootstrap.sh\n",
        "Both entry scripts use these variables when they install packages.\n",
        "| variable | meaning |",
        "|---|---|",
    ]
    lines += [f"| {_ticked(names)} | {meaning} |" for names, meaning in _header("bootstrap.sh", "Variables it reads", 2)]
    return [*lines, ""]


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
