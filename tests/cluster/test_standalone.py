"""Is an audit the same on a cluster of machines, of which one dies?"""

from __future__ import annotations

from tests.support.daemons import assert_same_tables, daemons, submitted, wait_until


def test_an_audit_on_two_workers_of_which_one_is_killed_has_the_same_tables(audited_here, repository, capture, tmp_path):
    """The workers' Python has no txnlib: what it runs is the zip that spark-submit.sh ships."""
    out = tmp_path / "out"
    (tmp_path / "cluster").mkdir()
    on_loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with daemons(tmp_path / "cluster") as started:
        master = started.start("master", "spark-class", "org.apache.spark.deploy.master.Master", *on_loopback)
        url = master.said("(spark://127.0.0.1:[0-9]+)")
        resources = ["--cores", "1", "--memory", "1g"]
        workers = [
            started.start(name, "spark-class", "org.apache.spark.deploy.worker.Worker", *on_loopback, *resources, url)
            for name in ("worker-1", "worker-2")
        ]
        for worker in workers:
            worker.said("(Successfully registered with master)")
        asked = ["audit", "--input", str(capture), "--output", str(out), "--master", url]
        light = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
        quickly = ["--conf", f"spark.executor.extraJavaOptions={light}", "--conf", "spark.shuffle.io.retryWait=100ms"]
        with submitted(repository, *asked, "--", *quickly) as audit:
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
