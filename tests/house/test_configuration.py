"""Settings as docs/configuration.md describes them: precedence, defaults, completeness."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.house.test_docs import ROOT
from txnlib.pipeline import run
from txnlib.pipeline.audit_request import AuditRequest
from txnlib.readers.capture import Capture
from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.settings import (
    ApplicationSettings,
    ClusterSettings,
    Settings,
    SettingsFile,
    ThresholdSettings,
    known_keys,
    read_settings_file,
)
from txnlib.spark.capture_source import CaptureSource

KEYS = known_keys()
MODELS = (ThresholdSettings, ClusterSettings, ApplicationSettings, Settings, CaptureNotes, PartitionNotes)
SCAN_INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


def decided(setting: str, *, option: dict[str, Any], file: dict[str, Any], capture_json: dict[str, Any]) -> object:
    capture = Capture((), CaptureNotes.model_validate(capture_json), ("/captures/blue",))
    numbers = {name: value for name, value in option.items() if name != "cluster"}
    request = AuditRequest(as_of_ms=1, cluster=option.get("cluster"), settings=numbers)
    source = CaptureSource(None, capture)  # type: ignore[arg-type]
    settings = run._decide(request, SettingsFile.model_validate(file), source, None, None)
    return getattr(settings, setting)


def sayings(key: str) -> dict[str, tuple[dict[str, Any], object]]:
    """Who says it, the weakest first -> what is said, and what is then decided."""
    section, _, name = key.partition(".")
    said = KEYS[key].json_schema_extra
    default = Settings.model_fields[said["setting"]].default
    found = {}
    for number, who in enumerate(("capture_json", "file", "option"), start=101):
        value = number if isinstance(default, int) else (rf"(?P<application>\w+){number}",) if default == () else str(number)
        if who == "file":
            words = {section: {name: value}}
        elif said[who] == "broker_settings":
            words = {"broker_settings": {SCAN_INTERVAL: str(value)}}
        elif said[who]:
            words = {said[who].removeprefix("--").replace("-", "_"): value}
        else:
            continue
        found[who] = (words, value * 60_000 if name.endswith("_minutes") else value)
    return found


@pytest.mark.parametrize("key", KEYS)
def test_option_over_settings_file_over_capture_json_over_default(key):
    setting = KEYS[key].json_schema_extra["setting"]
    told: dict[str, dict[str, Any]] = {"option": {}, "file": {}, "capture_json": {}}
    default = "blue" if key == "cluster.name" else Settings.model_fields[setting].default
    assert decided(setting, **told) == default
    for who, (words, then) in sayings(key).items():
        told[who] = words
        assert decided(setting, **told) == then, told


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_says_what_it_is(model):
    assert [name for name, field in model.model_fields.items() if not (field.description or "").endswith(".")] == []


@pytest.mark.parametrize("model", [CaptureNotes, PartitionNotes], ids=lambda model: model.__name__)
def test_every_field_of_capture_json_says_what_is_done_without_it(model):
    assert [name for name, field in model.model_fields.items() if not field.json_schema_extra["without"].endswith(".")] == []


def test_the_settings_file_of_the_project_names_every_key_with_its_default(tmp_path):
    text = (ROOT / "conf" / "audit.toml").read_text()
    assert read_settings_file(ROOT / "conf" / "audit.toml") == SettingsFile(), "it sets something"
    (tmp_path / "audit.toml").write_text(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))
    shown = read_settings_file(tmp_path / "audit.toml").model_dump()
    assert {f"{section}.{key}" for section, keys in shown.items() for key, value in keys.items() if value} == set(KEYS)
    for key, field in KEYS.items():
        section, _, name = key.partition(".")
        default = Settings.model_fields[field.json_schema_extra["setting"]].default
        if isinstance(default, int):
            assert shown[section][name] * (60_000 if name.endswith("_minutes") else 1) == default, key


def test_the_socket_files_of_python_tasks_have_paths_that_are_short_enough():
    lines = [line.split() for line in (ROOT / "conf" / "spark-defaults.conf").read_text().splitlines()]
    given = {words[0]: words[1] for words in lines if len(words) == 2 and words[0] != "#"}
    assert given["spark.python.unix.domain.socket.enabled"] == "true"
    assert len(f"{given['spark.python.unix.domain.socket.dir']}/.{uuid4()}.sock") < 108, "sun_path of Linux"
