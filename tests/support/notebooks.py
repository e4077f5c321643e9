"""Notebooks, run cell by cell: the outputs that Jupyter would keep. And in a kernel, the outputs that it keeps."""

import ast
import contextlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tests.support.daemons import PATIENCE_S, bare_environment

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
#: A finished table, as `progress=print` shows it.
PROGRESS = re.compile(r"\w+: [\d,]+ rows?, .* s\n")


@dataclass(frozen=True, slots=True)
class Ran:
    """A notebook after its last cell: its variables, and the outputs of each cell of code."""

    name: str
    known: Mapping[str, Any]
    outputs: list[list[dict[str, Any]]]


def content(name: str) -> dict[str, Any]:
    return json.loads((NOTEBOOKS / name).read_text())


def cells(name: str, tag: str = "") -> list[dict[str, Any]]:
    """The cells of code of a notebook; with a tag, only those that have it."""
    code = [cell for cell in content(name)["cells"] if cell["cell_type"] == "code"]
    return [cell for cell in code if not tag or tag in cell["metadata"].get("tags", ())]


def run(name: str, **parameters: object) -> Ran:
    """Runs all cells. Parameters take the place of those in the cell that is tagged so; in outputs, they are those of
    the cell."""
    known: dict[str, Any] = {}
    outputs, hidden = [], {}
    with pd.option_context("display.width", 80):
        for number, cell in enumerate(cells(name), 1):
            outputs.append(_outputs("".join(cell["source"]), known, number))
            if "parameters" in cell["metadata"].get("tags", ()):
                assert parameters.keys() <= known.keys()
                hidden = {str(value): known[key] or "…" for key, value in parameters.items()}
                known |= parameters
    return Ran(name, known, json.loads(_normal(json.dumps(outputs), hidden)))


def committed(name: str) -> list[list[dict[str, Any]]]:
    """The outputs in the file, of each cell of code."""
    return [cell["outputs"] for cell in cells(name)]


def renew(ran: Ran) -> None:
    """Writes the outputs into the notebook, as Jupyter formats its files."""
    notebook = content(ran.name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(code, ran.outputs, strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    (NOTEBOOKS / ran.name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def run_in_kernel(name: str, **parameters: object) -> list[list[dict[str, Any]]]:
    """The outputs of each cell of code in a kernel of its own, started as Jupyter starts one; also those of errors."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.reads((NOTEBOOKS / name).read_text(), as_version=4)
    (given,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    known: dict[str, Any] = {}
    exec(given.source, known)
    assert parameters.keys() <= known.keys()
    given.source += "".join(f"\n{key} = {value!r}" for key, value in parameters.items())
    place = {"metadata": {"path": str(NOTEBOOKS)}}
    client = NotebookClient(
        notebook, timeout=PATIENCE_S, startup_timeout=PATIENCE_S, allow_errors=True, resources=place
    )
    client.execute(env=bare_environment())
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    hidden = {str(value): known[key] or "…" for key, value in parameters.items()}
    return json.loads(_normal(json.dumps(outputs), hidden))


def _outputs(source: str, known: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Runs a cell. A value in its last line is shown, as in Jupyter."""
    shown: list[dict[str, Any]] = []
    known["display"] = lambda value: shown.append({"output_type": "display_data", **_shown(value)})
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), known)
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), known) if last is not None else None
    if text := printed.getvalue():
        shown.insert(0, {"name": "stdout", "output_type": "stream", "text": _ordered(_lines(text))})
    if value is not None:
        shown.append({"execution_count": number, "output_type": "execute_result", **_shown(value)})
    return shown


def _shown(value: Any) -> dict[str, Any]:
    """The forms of a value among which a viewer chooses."""
    data = {"text/plain": _lines(repr(value))}
    if (html := value._repr_html_()) is not None:
        data["text/html"] = _lines(html)
    return {"data": data, "metadata": {}}


def _ordered(lines: list[str]) -> list[str]:
    """Of progress, only the finished tables, by name: tables are made at the same time, and slow reads say more."""
    return sorted(filter(PROGRESS.fullmatch, lines)) or lines


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _normal(text: str, hidden: Mapping[str, str]) -> str:
    """Outputs without what differs between machines and runs: places, and times of execution."""
    for value, shown in hidden.items():
        if "/" in value:
            text = text.replace(value, shown)
    text = text.replace(f"{ROOT}/", "../").replace(str(ROOT), "..")
    return re.sub(r"\b\d+\.\d+ s(?=\\n)", "… s", text)
