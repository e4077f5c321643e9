"""Settings as docs/configuration.md describes them: precedence, defaults, completeness."""

import re
from typing import Any
from uuid import uuid4

import pytest

import txnlib
from tests.house.test_docs import ROOT
from txnlib.pipeline import run
from txnlib.pipeline.audit_request import AuditRequest
from txnlib.readers.capture import Capture
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.settings import NUMBERS, SETTINGS, GivenNumbers, Settings, SettingsFile, decide, read_settings_file


def decided(setting: str, *, option: dict[str, Any], file: dict[str, Any], capture_json: dict[str, Any]) -> object:
    capture = Capture((), CaptureNotes.model_validate(capture_json), ("/captures/blue",))
    numbers = {name: value for name, value in option.items() if name != "cluster"}
    request = AuditRequest(as_of_ms=1, cluster=option.get("cluster"), settings=numbers)
    settings = run._decide(request, SettingsFile.model_validate(file), capture, (1, "given"))
    return getattr(settings, setting)


def sayings(name: str) -> dict[str, tuple[dict[str, Any], object]]:
    """Who says it, the weakest first -> what is said, and what is then decided."""
    each = SETTINGS[name]
    values = {int: (101, 102, 103), tuple: [(rf"(?P<application>\w+){number}",) for number in (101, 102, 103)]}
    noted, in_file, option = values.get(type(each.default), ("101", "102", "103"))
    found: dict[str, tuple[dict[str, Any], object]] = {}
    if each.noted:
        found["capture_json"] = ({name: noted}, noted)
    elif name == "timeout_scan_interval_ms":
        found["capture_json"] = ({"broker_settings": {each.broker: str(noted)}}, noted)
    found["file"] = ({each.section: {each.name: in_file}}, in_file * each.unit)
    if each.option:
        found["option"] = ({each.argument: option}, option * each.unit)
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_option_over_settings_file_over_capture_json_over_default(name):
    told: dict[str, dict[str, Any]] = {"option": {}, "file": {}, "capture_json": {}}
    assert decided(name, **told) == ("blue" if name == "cluster" else Settings.model_fields[name].default)
    for who, (words, then) in sayings(name).items():
        told[who] = words
        assert decided(name, **told) == then, told


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, 86_400_000),
        ({"kafka_version": "3.4.0"}, 86_400_000),
        ({"kafka_version": "3.4.0", "transactional_id_expiration_ms": 5}, 86_400_000),
        ({"kafka_version": "3.3.2"}, 604_800_000),
        ({"kafka_version": "2.8.2", "transactional_id_expiration_ms": 5}, 5),
        ({"kafka_version": "2.8.2", "transactional_id_expiration_ms": 5, "producer_id_expiration_ms": 6}, 6),
    ],
)
def test_producers_of_old_brokers_expire_after_what_transactional_ids_do(notes, expected):
    assert decided("producer_id_expiration_ms", option={}, file={}, capture_json=notes) == expected


def test_the_library_takes_the_numbers_of_all_options():
    assert GivenNumbers.__annotations__.keys() == NUMBERS.keys()
    with pytest.raises(TypeError, match="unexpected keyword argument 'stuck_afterwards'"):
        txnlib.audit("capture", output="out", stuck_afterwards=5)


def test_the_settings_file_of_the_project_sets_nothing_and_shows_every_default(tmp_path):
    assert read_settings_file(ROOT / "conf" / "audit.toml") == SettingsFile(), "it sets something"
    text = (ROOT / "conf" / "audit.toml").read_text()
    (tmp_path / "audit.toml").write_text(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))
    shown = decide({}, read_settings_file(tmp_path / "audit.toml"), None)
    assert shown.keys() == SETTINGS.keys()
    assert {name: value for name, value in shown.items() if isinstance(value, int)} == {
        name: each.default for name, each in SETTINGS.items() if isinstance(each.default, int)
    }


def test_the_socket_files_of_python_tasks_have_paths_that_are_short_enough():
    lines = [line.split() for line in (ROOT / "conf" / "spark-defaults.conf").read_text().splitlines()]
    given = {words[0]: words[1] for words in lines if len(words) == 2 and words[0] != "#"}
    assert given["spark.python.unix.domain.socket.enabled"] == "true"
    assert len(f"{given['spark.python.unix.domain.socket.dir']}/.{uuid4()}.sock") < 108, "sun_path of Linux"
