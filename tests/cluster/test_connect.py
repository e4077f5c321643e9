"""Is an audit the same through Spark Connect, which is what Databricks serverless and shared clusters speak?"""

from __future__ import annotations

import os

from tests.support.daemons import assert_same_tables, daemons, submitted

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def test_an_audit_through_spark_connect_has_the_same_tables(audited_here, repository, capture, tmp_path):
    """The server's Python has no txnlib: the code comes with the session, as everything of the library goes over the wire."""
    out = tmp_path / "out"
    (tmp_path / "server").mkdir()
    with daemons(tmp_path / "server") as started:
        server = started.start(
            "connect",
            *["spark-submit", "--master", "local[2]", "--jars", os.environ["TXNLIB_DELTA_JARS"]],
            *["--properties-file", str(repository / "conf" / "spark-defaults.conf")],
            *["--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.connect.grpc.binding.port=0"],
            *["--class", SERVER, "spark-internal"],
        )
        remote = f"sc://127.0.0.1:{server.said('server started at: .*:([0-9]+)')}"
        asked = ["audit", "--input", str(capture), "--output", str(out)]
        with submitted(repository, *asked, SPARK_REMOTE=remote) as audit:
            printed, progress = audit.communicate()
    assert audit.returncode == 0, progress + server.log.read_text()
    assert "1 HANGING" in printed
    assert "Exception" not in progress
    assert_same_tables(out, audited_here)


def test_a_server_takes_no_options_of_spark_submit(repository):
    with submitted(repository, "audit", "--", "--executor-memory", "4g", SPARK_REMOTE="sc://nowhere:15002") as audit:
        _, said = audit.communicate()
    assert (audit.returncode, "nothing may follow --" in said) == (2, True), said
