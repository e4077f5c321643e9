"""`txnlib.read`: the tables of a run as Arrow."""

import sys
from datetime import UTC, datetime

import pytest

import txnlib
from tests.support.delta_tables import NOW, at, write, write_run
from txnlib.core.schema import ALWAYS_THERE, TABLES
from txnlib.core.schema.views import VIEWS
from txnlib.errors import MissingExtraError, MissingTableError, UnreadableInputError, UsageError
from txnlib.readers.arrow_schemas import arrow_schema

#: Two clusters, the newest run of one of which has not ended.
RUNS = {
    "first": {"as_of_ms": NOW},
    "second": {"as_of_ms": NOW + 2},
    "failed": {"as_of_ms": NOW + 3, "status": "FAILED"},
    "elsewhere": {"as_of_ms": NOW + 1, "cluster": "other"},
}


@pytest.fixture
def root(tmp_path):
    for topic, run in RUNS.items():
        run_id = write_run(tmp_path, **run)
        write(tmp_path, "open_transactions", {"topic": topic, "as_of": at(run["as_of_ms"])}, run_id=run_id)
    return tmp_path


@pytest.mark.parametrize(
    ("chosen", "topic"),
    [
        ({}, "second"),
        ({"cluster": "other"}, "elsewhere"),
        ({"as_of": NOW}, "first"),
        ({"as_of": str(NOW)}, "first"),
        ({"as_of": datetime.fromtimestamp(NOW / 1000, UTC)}, "first"),
        ({"as_of": NOW + 3}, "failed"),
        ({"run_id": f"test-{NOW + 3}"}, "failed"),
    ],
)
def test_the_newest_finished_run_is_read_unless_another_is_named(root, chosen, topic):
    read = txnlib.read(root, **chosen)
    as_of_ms = RUNS[topic]["as_of_ms"]
    assert read.open_transactions.select(["topic", "as_of"]).to_pylist() == [{"topic": topic, "as_of": at(as_of_ms)}]
    assert read["open_transactions"].column_names == list(TABLES["open_transactions"].names)
    assert read.run_id.endswith(f"-{as_of_ms}")
    assert txnlib.open_audit(root, **chosen).run_id == read.run_id


def test_a_run_or_a_table_that_is_not_there_is_named(root, tmp_path):
    for wrong in ({"as_of": 0}, {"cluster": "nobody"}, {"cluster": "other", "as_of": NOW}):
        with pytest.raises(UsageError, match="no such run in audit_runs: check cluster= and as_of="):
            txnlib.read(root, **wrong)
    with pytest.raises(UsageError, match=f"no such run: test-{NOW}0; did you mean test-{NOW}?"):
        txnlib.read(root, run_id=f"test-{NOW}0")
    with pytest.raises(UnreadableInputError, match="no tables of an audit can be read there"):
        txnlib.read(tmp_path / "nowhere")
    read = txnlib.read(root)
    with pytest.raises(UsageError, match="no table transaction; expected one of audit_runs, "):
        read["transaction"]
    with pytest.raises(AttributeError, match="no table transaction"):
        _ = read.transaction
    with pytest.raises(MissingTableError, match="quarantine"):
        _ = read.quarantine


def test_a_table_without_rows_has_its_columns(root):
    for name in ALWAYS_THERE:
        write(root, name)
    read = txnlib.read(root)
    assert list(read) == [*TABLES, *VIEWS]
    assert {*TABLES, *VIEWS, "run_id"} == {*dir(read)}
    for name in VIEWS:
        assert not {"cluster", "run_id"} & {*read[name].column_names}
        assert not {"string_view", "timestamp[ns]"} & {*map(str, read[name].schema.types)}
    assert read.latest_runs.num_rows == read.latest_open_transactions.num_rows == 1
    assert read.in_doubt_transactions.num_rows == 0
    for name in TABLES.keys() - ALWAYS_THERE:
        schema = arrow_schema(TABLES[name].columns)
        types = [str(each.type).replace(" not null", "") for each in schema]
        assert read[name].num_rows == 0
        assert (read[name].column_names, [*map(str, read[name].schema.types)]) == (schema.names, types)


def test_without_pyarrow_the_extra_is_named(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"txnlib\.read needs pyarrow: .*'txnlib\[local\]'"):
        txnlib.read(root)
