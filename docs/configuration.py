"""conf/audit.toml, and the fields of capture.json for configuration.md."""

from __future__ import annotations

import textwrap
from typing import Any

from markdown_table import table
from pydantic import BaseModel

from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.settings import KEYS, SECTIONS, SETTINGS

SETTINGS_FILE = """\
# Settings of an audit: `--conf conf/audit.toml`. Every key is optional. Options on the command line override this file,
# which overrides capture.json, which overrides the defaults shown here. Numbers are at most 2_147_483_647.
"""


def settings_file() -> str:
    """conf/audit.toml: every key with what it decides and its default, commented out."""
    lines = [SETTINGS_FILE]
    for section, about in SECTIONS.items():
        lines.append(f"[{section}]   # {about}\n")
        for name in (name for name in KEYS.values() if SETTINGS[name].section == section):
            each = SETTINGS[name]
            lines += textwrap.wrap(
                " ".join([each.decides, *_also(name)]),
                118,
                initial_indent="# ",
                subsequent_indent="# ",
                break_on_hyphens=False,
                break_long_words=False,
            )
            lines += [f"# {each.name} = {each.example or f'{each.default // each.unit:_}'}", ""]
    return "\n".join(lines)


def _also(name: str) -> list[str]:
    """What holds where nobody says anything, and where else the setting can be given."""
    each = SETTINGS[name]
    noted = name if each.noted else "broker_settings" if hasattr(CaptureNotes, name) else ""
    places = [*filter(None, [each.option, f"`{noted}` in capture.json" if noted else ""])]
    default = [f"Default: {each.without[0].lower()}{each.without[1:]}"] if each.noted else []
    return [*default, *([f"Also: {', '.join(places)}."] if places else [])]


def _notes() -> list[str]:
    """The fields of capture.json that are no settings."""
    return _noted({name: said for name, said in _properties(CaptureNotes).items() if name not in SETTINGS})


def _noted(fields: dict[str, Any]) -> list[str]:
    rows = [(f"`{name}`", f"{said['description']}{_composed(said)}", said["without"]) for name, said in fields.items()]
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


BLOCKS = {
    "notes": _notes,
    "partition-notes": lambda: _noted(_properties(PartitionNotes)),
}
