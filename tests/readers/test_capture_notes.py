"""Odd fields of capture.json: an error with the file and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.errors import ConfigError, UnreadableInputError
from txnlib.readers.capture_notes import MOST_BYTES, read_capture_notes

SCAN_INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
ODD: tuple[Any, ...] = (1.5, 1.0, True, "7", [], {}, -2, 2**63, 10**400, float("nan"), float("inf"))


def noted(folder: Path, content: str) -> Path:
    (folder / "capture.json").write_text(content)
    return folder / "capture.json"


def refused(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_capture_notes(str(path))
    assert caught.value.path == str(path)
    return caught.value


FIELDS = {
    "captured_at_ms.default": lambda odd: {"captured_at_ms": {"default": odd}},
    "captured_at_ms.1/orders-0": lambda odd: {"captured_at_ms": {"default": 1, "1/orders-0": odd}},
    "coordinator_partitions": lambda odd: {"coordinator_partitions": odd},
    "transaction_max_timeout_ms": lambda odd: {"transaction_max_timeout_ms": odd},
    "transactional_id_expiration_ms": lambda odd: {"transactional_id_expiration_ms": odd},
    "producer_id_expiration_ms": lambda odd: {"producer_id_expiration_ms": odd},
    "transaction_version": lambda odd: {"transaction_version": odd},
    "partitions.orders-0.leader": lambda odd: {"partitions": {"orders-0": {"leader": odd}}},
    "partitions.orders-0.replicas.0": lambda odd: {"partitions": {"orders-0": {"replicas": [odd]}}},
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("odd", ODD, ids=[str(odd)[:8] for odd in ODD])
def test_an_odd_number_names_file_and_field(tmp_path, field, odd):
    path = noted(tmp_path, json.dumps(FIELDS[field](odd)))
    assert refused(path).key == field


@pytest.mark.parametrize("digits", ["9" * 5_000, "-" + "9" * 5_000, "1e400", "0x10", "1" * 20])
def test_a_number_of_any_length_names_file_and_field(tmp_path, digits):
    assert refused(noted(tmp_path, f'{{"coordinator_partitions": {digits}}}')).key in ("", "coordinator_partitions")


@pytest.mark.parametrize("interval", ["soon", "-1", "1.5", "\u00b2", "\u0663", "9" * 5_000, "2147483648", ""])
def test_a_brokers_setting_that_is_used_has_to_be_a_number(tmp_path, interval):
    error = refused(noted(tmp_path, json.dumps({"broker_settings": {SCAN_INTERVAL: interval, "other": "soon"}})))
    assert error.key == "broker_settings"
    assert SCAN_INTERVAL in error.problem


@pytest.mark.parametrize(
    "name", ["orders", "orders-2147483648", "orders-" + "9" * 50, "orders-\u0663", "a/b-0", "-0", "orders-0 "]
)
def test_a_partition_is_a_topic_and_an_int32(tmp_path, name):
    error = refused(noted(tmp_path, json.dumps({"partitions": {name: {"leader": 1}}})))
    assert error.key == "partitions"


@pytest.mark.parametrize("content", ["", "{", "[]", "1", '"', "[" * 100_000, '{"cluster": "\\ud800"}', "\x00"])
def test_what_is_no_json_object_names_the_file(tmp_path, content):
    refused(noted(tmp_path, content))


def test_the_limits_themselves_are_taken(tmp_path):
    content = {
        "captured_at_ms": {"default": LAST_INSTANT_MS, "1/orders-0": 0},
        "coordinator_partitions": 100_000,
        "transaction_max_timeout_ms": 2**31 - 1,
        "broker_settings": {SCAN_INTERVAL: "2147483647"},
        "partitions": {"orders-2147483647": {"leader": -1, "replicas": [2**31 - 1, 0]}},
    }
    notes = read_capture_notes(str(noted(tmp_path, json.dumps(content))))
    assert notes.instants.latest_ms == LAST_INSTANT_MS
    assert notes.timeout_scan_interval_ms == 2**31 - 1


def test_notes_without_an_end_are_not_read_whole(tmp_path):
    with noted(tmp_path, "{").open("r+b") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(
        UnreadableInputError, match=f"capture.json: cannot be opened: it has more than {MOST_BYTES} bytes"
    ):
        read_capture_notes(str(tmp_path / "capture.json"))
