"""Captures of raw files and their text, judged as the raw files."""

import pytest

from tests.jobs.test_start_from_snapshots import judged, stable
from tests.support import live_output
from tests.support.memory_audits import audited


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dump"), [("quickstart", "4.1.1"), ("cluster-3.9", "3.9.1")])
def test_text_beside_raw_files_changes_nothing(spark, captures, name, dump):
    as_of = ("--as-of", str(live_output.as_of(captures / name)))
    raw, text = captures / name / "brokers", captures / name / "dumps" / dump
    alone, mixed = audited(spark, raw, *as_of), audited(spark, [raw, text], *as_of)
    assert (judged(mixed), stable(mixed)) == (judged(alone), stable(alone))
    assert [row for row in mixed.rows("findings") if row["name"] == "COPIES_DISAGREE"] == []
    assert any(row["source"].startswith("text:") for row in mixed.rows("coverage"))
