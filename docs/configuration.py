"""Tables of configuration.md: settings, options, capture.json and environment variables, each from the one place that
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
SETTINGS_FILE = """\
# Settings of an audit: `--conf conf/audit.toml`. Every key is optional. Options on the command line override this file,
# which overrides capture.json, which overrides the defaults shown here. docs/configuration.md says more of each.
"""


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
    lines = []
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
    return table(("jobs", "options"), rows)


def _called(option: Option) -> str:
    value = option.how.get("metavar") or "|".join(option.how.get("choices", ()))
    return f"{option.name} {value}".strip()


def _acknowledgements() -> list[str]:
    fields = [(f"`{name}`", field.description) for name, field in Acknowledgement.model_fields.items()]
    return table(("key", "meaning"), fields)


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


def _submit() -> list[str]:
    rows = _header("spark-submit.sh", "Environment variable", 3)
    told = [(f"`{name}`", "" if value == "-" else value, meaning) for name, value, meaning in rows]
    return table(("variable", "default", "meaning"), told)


def _installs() -> list[str]:
    rows = _header("bootstrap.sh", "Variables it reads", 2)
    return table(("variable", "meaning"), [(_ticked(names), meaning) for names, meaning in rows])


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


BLOCKS = {
    "settings": _keys,
    "options": _options,
    "acknowledgements": _acknowledgements,
    "notes": lambda: _noted(CaptureNotes),
    "partition-notes": lambda: _noted(PartitionNotes),
    "spark-submit": _submit,
    "bootstrap": _installs,
}
