"""The law of both engines: their tables are equal, and either continues what the other began."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from tests.support.audits import printed
from tests.support.both_engines import Asked, audit_by_embedded, audit_by_spark, differences, engines_of
from tests.support.daemons import OF_EARLIER_RUNS
from txnlib.ask.delta_rows import Tables, open_tables, runs
from txnlib.core.schema import TABLES

pytestmark = pytest.mark.classic

#: The sample, and small captures of real clusters; besides, two nights of one.
CAPTURES = ("sample", "hostile-4.3", "transactions-v2-4.3")
#: What says how a run was made, or what earlier runs showed.
OF_RUNS = {"audit_runs", "ended_transactions"}
COLUMNS_OF_RUNS = {*OF_EARLIER_RUNS, "first_seen", "runs_seen"}


@pytest.fixture(scope="module")
def audited(engine, captures: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: by each engine, the tables of captures; two nights by one engine, and by one after the other; the
    second night alone."""
    root = tmp_path_factory.mktemp("engines")
    places = {name: captures / name / "brokers" for name in CAPTURES}
    places["sample"] = repository / "examples" / "quickstart" / "brokers"
    first, second = (captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2))

    def asked(capture: Path, output: str) -> Asked:
        return Asked(str(capture), str(root / output), cluster="eu")

    def whole(engine: str) -> list[Asked]:
        return [asked(place, f"{engine}/{name}") for name, place in places.items()]

    audit_by_embedded([*whole("embedded"), asked(first, "nights")])
    copytree(root / "nights", root / "begun by embedded")
    audit_by_spark([*whole("spark"), asked(first, "begun by spark"), asked(second, "begun by embedded")])
    audit_by_embedded([asked(second, output) for output in ("nights", "begun by spark", "full")])
    return root


@pytest.mark.parametrize("name", CAPTURES)
def test_both_engines_make_equal_tables(audited, name):
    folders = [audited / engine / name for engine in ("embedded", "spark")]
    assert [engines_of(folder) for folder in folders] == [["embedded"], ["spark"]]
    assert differences(*folders) == []


@pytest.mark.parametrize(("begun", "engines"), [("embedded", ["embedded", "spark"]), ("spark", ["spark", "embedded"])])
def test_what_one_engine_began_and_the_other_continued_is_as_if_one_had_made_it(audited, begun, engines):
    mixed = audited / f"begun by {begun}"
    assert engines_of(mixed) == engines
    assert differences(mixed, audited / "nights") == []


@pytest.mark.parametrize("begun", ["embedded", "spark"])
def test_what_one_engine_began_and_the_other_continued_equals_a_full_audit(audited, begun):
    mixed, full = (Tables(str(audited / name)) for name in (f"begun by {begun}", "full"))
    (night, *_), (run,) = (runs(open_tables(each.root)) for each in (mixed, full))
    assert night["run_id"] == run["run_id"]
    for name in TABLES.keys() - OF_RUNS:
        columns = [each.name for each in TABLES[name].columns if each.name not in COLUMNS_OF_RUNS]
        rows = [printed(each.rows(name, columns, [("run_id", "=", run["run_id"])])) for each in (mixed, full)]
        assert rows[0] == rows[1], name
