"""Every notebook, run as it is: its outputs are those in its file."""

import ast
import re
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.support.notebooks import (
    NOTEBOOKS,
    ROOT,
    cells,
    committed,
    content,
    renew,
)
from tests.support.three_nights import three_nights

pytestmark = pytest.mark.shares("notebooks")

ALL = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
HOW = "if this is intended, run ./run-tests.sh tests/notebooks --renew-notebooks, and look at what changed"


@pytest.fixture
def compared(request):
    """Compares the outputs with those in the file, or writes them."""

    def compare(ran):
        if request.config.getoption("--renew-notebooks", default=False):
            renew(ran)
        assert ran.outputs == committed(ran.name), HOW
        return ran

    return compare


def test_a_capture_is_audited(notebook_of_the_audit, compared):
    assert compared(notebook_of_the_audit).known["found"].cluster == "quickstart"


def test_one_transaction_is_followed_from_both_sides(run_notebook, audited_in_a_notebook, compared):
    ran = compared(run_notebook("follow_one_transaction.ipynb", TABLES=audited_in_a_notebook["found"].location))
    assert ran.known["transaction"]["verdict"] == "HANGING"
    assert "payments-batch-7 CompleteAbort" in " ".join(str(ran.known["story"]).split())


def test_a_stuck_partition_is_explained(run_notebook, audited_in_a_notebook, compared):
    ran = compared(run_notebook("why_is_this_partition_stuck.ipynb", TABLES=audited_in_a_notebook["found"].location))
    assert [row["action"] for row in ran.known["plan"].collect()] == ["ABORT"]


def test_the_history_of_three_nights_is_told(run_notebook, spark, tmp_path, compared):
    ran = compared(run_notebook("history_of_the_nightly_audit.ipynb", TABLES=str(three_nights(tmp_path / "out"))))
    assert ran.known["found"].run_id == "test-1795226400000", "the newest that was finished"


def test_every_notebook_is_run_here():
    here = "".join(path.read_text() for path in (Path(__file__), ROOT / "tests" / "conftest.py"))
    assert [name for name in ALL if f'"{name}"' not in here] == []


def shown(name):
    """What a viewer shows of a notebook that nobody runs: outputs as HTML."""
    outputs = [each["data"] for cell in committed(name) for each in cell if "data" in each]
    return "".join("".join(lines) for data in outputs for kind, lines in data.items() if kind == "text/html")


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_cuts_nothing_off(name):
    assert len(shown(name)) > 1_000
    assert not re.search(r"<t[dh]>(\.\.\.|[^<]*\.\.\.</td>)", shown(name))
    assert all(output["output_type"] != "error" for cell in committed(name) for output in cell)


@pytest.mark.parametrize("name", ["follow_one_transaction.ipynb", "why_is_this_partition_stuck.ipynb"])
def test_a_story_has_its_picture_where_nobody_has_run_it(name):
    """As an image: JupyterLab hides an SVG in a notebook that it has not run itself."""
    (picture,) = re.findall(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]+)">', shown(name))
    drawn = ElementTree.fromstring(b64decode(picture, validate=True))
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert "open from offset 24, 187 behind it" in list(drawn.itertext())


@pytest.mark.parametrize("name", ALL)
def test_outputs_name_no_machine_and_no_time_of_execution(name):
    text = (NOTEBOOKS / name).read_text()
    assert [place for place in (str(ROOT), "/tmp/", "/root/", "/home/") if place in text] == []
    assert re.findall(r"\d\.\d+ s\b", text) == []
    assert len(text) < 150_000


@pytest.mark.parametrize("name", ALL)
def test_the_first_cells_say_how_to_open_it(name):
    texts = ["".join(cell["source"]) for cell in content(name)["cells"][:2] if cell["cell_type"] == "markdown"]
    for needed in (
        "whl[audit]",
        f"jupyter lab notebooks/{name}",
        '".[local]"',
        "Databricks",
        "*Import*",
        "%pip install",
    ):
        assert needed in texts[1]


@pytest.mark.parametrize("name", ALL)
def test_on_databricks_widgets_take_the_place_of_the_parameters(name):
    """All but those of a folder, which tables in a catalog do not have."""
    (parameters,), (widgets,) = cells(name, "parameters"), cells(name, "databricks")
    given = {"schema": "a.b", "capture": "/Volumes/c", "topic": "orders", "partition": "7", "start_offset": "9"}
    made = []
    known = {
        "dbutils": SimpleNamespace(
            widgets=SimpleNamespace(text=lambda name, *_: made.append(name), get=given.__getitem__)
        )
    }
    for cell in (parameters, widgets):
        exec("".join(cell["source"]), known)
    folders = {"TABLES", "OUTPUT"} & known.keys()
    read = {key.upper(): value for key, value in given.items() if key in made}
    assert {key: str(known[key]) for key in read} == read
    assert [known[key] for key in folders] == [None]
    assert {key for key in known if key.isupper()} == read.keys() | folders
    assert isinstance(known.get("PARTITION", 0), int)
    assert isinstance(known.get("START_OFFSET", 0), int)


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_has_no_logic(name):
    """But for the one question whether it runs on Databricks."""
    for cell in cells(name):
        asks = [ast.If] if "databricks" in cell["metadata"].get("tags", ()) else []
        logic = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.Lambda)
        assert [type(node) for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, logic)] == asks


@pytest.mark.parametrize("name", ALL)
def test_queries_and_links_of_a_notebook_are_those_of_the_documents(name, repository):
    shown = (repository / "docs" / "sql.md").read_text()
    text = "\n".join("".join(cell["source"]) for cell in content(name)["cells"])
    assert [query for query in re.findall(r'sql\("""\n(.*?)\n"""\)', text, re.DOTALL) if query not in shown] == []
    assert [link for link in re.findall(r"\]\(([^)#]+)", text) if not (NOTEBOOKS / link).exists()] == []
