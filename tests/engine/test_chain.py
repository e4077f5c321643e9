"""Chains of runs: what a run has of earlier ones, in a folder and in a catalog."""

import pyarrow as pa
import pytest

from tests.support.frames import frame
from txnlib.core.chains import Chain
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.engine.retention import forget_runs
from txnlib.engine.store import RunStore
from txnlib.readers.arrow_schemas import arrow_schema
from txnlib.spark.schemas import TABLES

FIRST, NEXT = Chain("eu-1"), Chain("eu-1", 1)
#: The first run once more, beside its chain.
ATTEMPT = Chain("eu-1-2", kept=("eu-1",))
DAY_MS = 86_400_000

CATALOG = pytest.mark.classic
#: In a catalog, each takes a minute.
KINDS = ["folder", pytest.param("catalog", marks=[CATALOG, pytest.mark.slow])]
FORGETTING = ["folder", pytest.param("catalog", marks=CATALOG)]


@pytest.fixture
def store(request, engine, tmp_path):
    if request.param == "folder":
        yield engine.store(str(tmp_path / "out"), None)
        return
    engine.spark.sql(f"CREATE SCHEMA chains LOCATION '{tmp_path / 'chains'}'")
    yield engine.store(None, "chains")
    engine.spark.sql("DROP SCHEMA chains CASCADE")


ORDERS = {"topic": "orders", "partition": 0, "source": "raw:1"}


def batches(spark, *offsets):
    named = ("segment_base_offset", "base_offset", "last_offset")
    return frame(spark, TABLES["record_batches"], *[ORDERS | dict.fromkeys(named, offset) for offset in offsets])


def copies(spark, since, first):
    judged = {"status": "COMPLETE", "is_judged": True, "batches_since": since, "batches_from": first}
    return frame(spark, TABLES["coverage"], ORDERS | judged)


def run_of(store, day, chain):
    return RunStore(store, "eu", f"eu-{day}", chain)


def written(store, day, chain, *offsets, since=None, first=0):
    run = run_of(store, day, chain)
    run.write("record_batches", batches(store.spark, *offsets))
    run.write("coverage", copies(store.spark, since, first))
    return run


def offsets(run):
    """What the run reads while it lasts; the same is read of it later."""
    found = read(run)
    assert read(RunStore(run.store, run.cluster, run.run_id, run.chain)) == found
    return found


def read(run):
    return sorted(row["base_offset"] for row in run.read("record_batches").select("base_offset").collect())


def note(store, day, chain):
    """The row of a run that was done on a day."""
    row = {"as_of": day * DAY_MS * 1_000, "status": "DONE", "started_at": 0, "settings": "{}", "version": "0"}
    rows = pa.Table.from_pylist(
        [row | {"chain": chain.name, "night": chain.night}], arrow_schema(CATALOGUE["audit_runs"].columns)
    )
    run_of(store, day, chain).write("audit_runs", rows)


def left(store):
    return sorted(row["base_offset"] for row in store.read_all("record_batches").select("base_offset").collect())


@pytest.mark.parametrize("store", KINDS, indirect=True)
def test_a_night_has_its_rows_and_the_earlier_ones_that_count(store):
    written(store, 1, FIRST, 1, 2)
    assert offsets(written(store, 2, NEXT, 3, since=0)) == [1, 2, 3]
    third = written(store, 3, Chain("eu-1", 2), 4, since=0, first=2)  # retention deleted offset 1
    assert offsets(third) == [2, 3, 4]
    fourth = written(store, 4, Chain("eu-1", 3), 7, since=None)  # the copy was rewritten, and read again
    assert offsets(fourth) == [7]
    assert offsets(written(store, 5, Chain("eu-1", 4), 8, since=3)) == [7, 8]
    assert [read(run_of(store, day, Chain("eu-1", day - 1))) for day in (1, 2, 3, 4)] == [
        [1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [7],
    ]


@pytest.mark.parametrize("store", KINDS, indirect=True)
def test_rows_of_a_chain_are_replaced_with_their_night(store):
    written(store, 1, FIRST, 1, 2)
    written(store, 2, NEXT, 3, since=0)
    assert offsets(written(store, 2, NEXT, 4, since=0)) == [1, 2, 4], "the night again"
    third = written(store, 3, NEXT, 5, since=0)
    assert (offsets(third), left(store)) == ([1, 2, 5], [1, 2, 5]), "it died, and another run took its place"
    again = written(store, 1, ATTEMPT, 8, 9)
    assert (offsets(again), offsets(RunStore(store, "eu", "eu-3", NEXT))) == ([8, 9], [1, 2, 5])


@pytest.mark.parametrize("store", FORGETTING, indirect=True)
def test_rows_of_a_chain_stay_as_long_as_a_run_needs_them(store):
    for day, chain, *new in ((1, FIRST, 1, 2), (2, NEXT, 3), (3, NEXT, 5), (1, ATTEMPT, 8, 9)):
        run_of(store, day, chain).write("record_batches", batches(store.spark, *new))
    assert left(store) == [1, 2, 5, 8, 9], "the second died, and the third took its place"
    for day, chain in ((1, ATTEMPT), (3, NEXT)):
        note(store, day, chain)
    gone = forget_runs(store, "eu", 2 * DAY_MS)
    assert (gone, left(store)) == (["eu-1"], [1, 2, 5]), "rows of the log go with the last run of their chain"
