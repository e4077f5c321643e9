"""The page configuration.md: settings, options, capture.json and environment variables, each from the one place that has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from txnlib.ask.acknowledgements import Acknowledgement
from txnlib.jobs.options import AUDIT, INGEST, OPTIONS, RECONSTRUCT, REPORT, Option
from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.settings import Settings, SettingsFile, known_keys, unit_of

ROOT = Path(__file__).resolve().parent.parent
JOBS = (AUDIT, INGEST, RECONSTRUCT, REPORT)
KAFKAS = "Kafka's default."
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


def _keys() -> list[str]:
    lines = ["## Settings file\n"]
    for section, key in (known.split(".") for known in known_keys()):
        if f"### [{section}]\n" not in lines:
            about = SettingsFile.model_fields[section].annotation.__doc__
            lines += (
                ["", f"### [{section}]\n", f"{_told(about)}\n"] if len(lines) > 1 else [f"### [{section}]\n", f"{_told(about)}\n"]
            )
            lines += ["| key | type | default | decides | option | `capture.json` |", "|---|---|---|---|---|---|"]
        field = known_keys()[f"{section}.{key}"]
        said = field.json_schema_extra
        also = [f"`{said[where]}`" if said[where] else "" for where in ("option", "capture_json")]
        kind = _kind(_properties(SettingsFile.model_fields[section].annotation)[key])
        lines.append(f"| `{key}` | {kind} | {default(f'{section}.{key}')} | {field.description} | {also[0]} | {also[1]} |")
    return [*lines, ""]


def default(key: str) -> str:
    """What holds where nobody says anything, in the unit of the key."""
    said = known_keys()[key].json_schema_extra
    number = Settings.model_fields[said["setting"]].default
    without = CaptureNotes.model_fields[said["capture_json"]].json_schema_extra["without"] if said["capture_json"] else KAFKAS
    if without != KAFKAS:
        return without.rstrip(".")
    if isinstance(number, int):
        return f"`{number // unit_of(key):_}`"
    return "none"


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
    numbers = {field.json_schema_extra["capture_json"]: default(key) for key, field in known_keys().items()}
    lines = ["| field | type | meaning | without it |", "|---|---|---|---|"]
    for name, said in _properties(model).items():
        without = f"Kafka's default, {numbers[name]}." if said["without"] == KAFKAS else said["without"]
        lines.append(f"| `{name}` | {_kind(said)} | {said['description']} | {without} |")
    return lines


def _decided() -> list[str]:
    lines = [
        "## Effective settings of an audit\n",
        "The JSON in `settings` of [audit_runs](tables.md#audit_runs), and `settings` in [the library](api.md#settings).\n",
        "| field | type | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {_kind(said)} | {said['description']} |" for name, said in _properties(Settings).items()]
    return [*lines, ""]


def _properties(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _told(docstring: str) -> str:
    return docstring.partition(";")[0].rstrip(".").replace("`", "") + "."


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
