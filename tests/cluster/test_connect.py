"""Audits through Spark Connect, as on Databricks serverless and shared clusters."""

from __future__ import annotations

from tests.support.daemons import assert_same_tables, audited, daemons, submitted


def test_audits_through_spark_connect_have_the_same_tables(
    audited_here, nights_here, repository, capture, nights, tmp_path
):
    """The server's Python has no txnlib: the code comes with the session, as everything of the library goes over the
    wire."""
    (tmp_path / "server").mkdir()
    one, two = tmp_path / "one", tmp_path / "two"
    with daemons(tmp_path / "server") as started:
        remote = started.connect_server()
        printed, _ = audited(repository, "--input", str(capture), "--output", str(one), SPARK_REMOTE=remote)
        assert "1 HANGING" in printed
        for night in nights:
            asked = ("--input", str(night), "--output", str(two))
            _, progress = audited(repository, *asked, SPARK_REMOTE=remote)
    assert "resuming from" in progress
    assert_same_tables(one, audited_here)
    assert_same_tables(two, nights_here)


def test_a_server_takes_no_options_of_spark_submit(repository):
    with submitted(repository, "audit", "--", "--executor-memory", "4g", SPARK_REMOTE="sc://nowhere:15002") as audit:
        _, said = audit.communicate()
    assert (audit.returncode, "options after -- are not allowed" in said) == (2, True), said
