"""The session of an audit on Spark: a copy with what an audit needs, beside one that stays as it is."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from txnlib.engine import spark_session
from txnlib.engine.engine import open_engine
from txnlib.engine.spark_session import MEANING, NEVER, active_session_kept, all_settings, copy_of, size_for
from txnlib.errors import UsageError

pytestmark = pytest.mark.classic

#: What sessions of others have: each changes what SQL means, or what is written.
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.databricks.delta.write.txnAppId": "theirs",
    "spark.databricks.delta.write.txnVersion": "7",
    "fs.azure.account.key": "theirs",
}
SHUFFLES = "spark.sql.shuffle.partitions"


@pytest.fixture
def theirs(spark) -> Iterator[object]:
    """A session of somebody else, which is the active one."""
    session = spark.newSession()
    for key, value in HOSTILE.items():
        session.conf.set(key, value)
    session.createDataFrame([], "a INT")  # makes it the active one
    yield session
    spark.createDataFrame([], "a INT")


def test_a_copy_means_what_we_mean_and_has_all_else(theirs):
    before = dict(all_settings(theirs))
    own = copy_of(theirs)
    own.conf.set("set.in.the.copy", "ours")
    assert all_settings(theirs) == before
    assert {key: own.conf.get(key) for key in MEANING} == MEANING
    assert [key for key in NEVER if own.conf.get(key, None) is not None] == []
    assert own.conf.get("fs.azure.account.key") == "theirs", "by which it opens what they open"


def test_what_is_as_we_need_it_is_not_set(spark):
    """Spark would warn of `escapedStringLiterals`, which is old, at every step of an audit."""
    known = all_settings(spark)
    own = copy_of(spark)
    assert all_settings(own).keys() - known.keys() <= {key for key in MEANING if spark.conf.get(key) != MEANING[key]}
    assert "spark.sql.parser.escapedStringLiterals" not in all_settings(own)


def test_frames_for_users_are_of_their_session_and_an_audit_is_beside_it(theirs):
    assert open_engine(is_shared=True).spark is theirs
    assert open_engine().spark is not theirs


def test_the_session_that_was_active_is_active_again(theirs):
    with suppress(UsageError), active_session_kept():
        copy_of(theirs).createDataFrame([(1,)], "a INT")
        assert type(theirs).getActiveSession() is not theirs
        raise UsageError("the audit failed")
    assert type(theirs).getActiveSession() is theirs


def test_where_no_copy_is_made_a_setting_that_would_change_results_is_named(theirs, monkeypatch):
    monkeypatch.setattr(spark_session, "_copy", lambda session: None)
    for _ in (key for key in HOSTILE if key.startswith("spark.")):
        with pytest.raises(UsageError, match="this session has spark") as refused:
            copy_of(theirs)
        exec(str(refused.value).partition(": first ")[2], {"spark": theirs})  # what the message says to do
    assert copy_of(theirs) is theirs


@pytest.mark.parametrize(("size", "partitions"), [(0, "8"), (1 << 30, "32"), (1 << 40, "200")])
def test_shuffles_are_of_the_size_of_the_capture_unless_the_session_says_it(spark, size, partitions):
    own, said = spark.newSession(), spark.newSession()
    own.conf.unset(SHUFFLES)
    said.conf.set(SHUFFLES, "3")
    for each in (own, said):
        size_for(each, size)
    assert (own.conf.get(SHUFFLES), said.conf.get(SHUFFLES)) == (partitions, "3")
