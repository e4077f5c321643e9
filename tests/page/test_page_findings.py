"""Findings with their places."""

from __future__ import annotations

from tests.support.delta_tables import write, write_run
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.report_rows import finding_places


def test_what_is_above_info_has_places(tmp_path) -> None:
    write_run(tmp_path)
    severities = {"COPY_OF_DELETED_TOPIC": "INFO", "MARKER_MISSING": "CRITICAL"}
    write(
        tmp_path,
        "findings",
        *[{"name": name, "severity": severity, "evidence": "…", "offset": 5} for name, severity in severities.items()],
    )
    found = finding_places(open_run(open_tables(str(tmp_path))), 9)
    assert [(each.name, len(each.places)) for each in found] == [
        ("MARKER_MISSING", 1),
        ("COPY_OF_DELETED_TOPIC", 0),
    ]
