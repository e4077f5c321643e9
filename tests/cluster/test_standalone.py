"""An audit on a cluster of machines, one of which dies."""

from __future__ import annotations

from tests.support.daemons import LIGHTLY, assert_same_tables, audited, daemons, submitted, wait_until


def test_an_audit_on_two_workers_of_which_one_is_killed_has_the_same_tables(
    audited_here, repository, capture, tmp_path
):
    """The workers' Python has no txnlib: what it runs is the zip that spark-submit.sh ships."""
    out = tmp_path / "out"
    (tmp_path / "cluster").mkdir()
    with daemons(tmp_path / "cluster") as started:
        url, workers = started.two_workers()
        asked = ["audit", "--input", str(capture), "--output", str(out), "--master", url]
        with submitted(repository, *asked, "--", *LIGHTLY) as audit:
            wait_until(lambda: audit.poll() is not None or list(out.glob("*/_delta_log/*0.json")), "the first table")
            both = [worker.log.with_suffix("").glob("app-*/*/stderr") for worker in workers]
            assert all(map(list, both)), "each has an executor"
            assert audit.poll() is None, "the audit goes on"
            workers[1].kill()
            printed, progress = audit.communicate()
    assert audit.returncode == 0, progress
    assert "Lost executor" in progress
    assert "1 HANGING" in printed
    assert_same_tables(out, audited_here)


def test_a_night_that_resumes_from_another_has_the_same_tables_there(nights_here, repository, nights, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "cluster").mkdir()
    with daemons(tmp_path / "cluster") as started:
        url, _ = started.two_workers()
        for night in nights:
            asked = ("--input", str(night), "--output", str(out), "--master", url)
            _, progress = audited(repository, *asked, "--", *LIGHTLY)
    assert "resuming from" in progress
    assert_same_tables(out, nights_here)
