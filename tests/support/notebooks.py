"""Notebooks, run cell by cell: the outputs that Jupyter would keep.

A kernel of its own would start a second Spark.
"""

import ast
import contextlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
#: A finished table, as `progress=print` shows it.
PROGRESS = re.compile(r"\w+: [\d,]+ rows?, .* s\n")
#: The name of the type of a chart has the version of Vega-Lite, and so has its schema.
PICTURE = "image/svg+xml"
CHART = re.compile(r"application/vnd\.vegalite\.v\d+(\+|\.)json")


@dataclass(frozen=True, slots=True)
class Ran:
    """A notebook after its last cell: its variables, and the outputs of each cell of code."""

    name: str
    known: Mapping[str, Any]
    outputs: list[list[dict[str, Any]]]

    @property
    def printed(self) -> str:
        """What all cells printed."""
        return "".join("".join(each["text"]) for cell in self.outputs for each in cell if each["output_type"] == "stream")


def content(name: str) -> dict[str, Any]:
    return json.loads((NOTEBOOKS / name).read_text())


def cells(name: str, tag: str = "") -> list[dict[str, Any]]:
    """The cells of code of a notebook; with a tag, only those that have it."""
    code = [cell for cell in content(name)["cells"] if cell["cell_type"] == "code"]
    return [cell for cell in code if not tag or tag in cell["metadata"].get("tags", ())]


def run(name: str, **parameters: object) -> Ran:
    """Runs all cells. Parameters take the place of those in the cell that is tagged so; in outputs, they are those of the cell."""
    known: dict[str, Any] = {}
    outputs, hidden = [], {}
    with alt.renderers.enable("mimetype"), pd.option_context("display.width", 80):
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
    """Writes the outputs into the notebook, as Jupyter formats its files; beside each chart, a picture of it."""
    notebook = content(ran.name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    known = {each["metadata"][PICTURE]["of"]: each["data"][PICTURE] for cell in code for each in pictures(cell["outputs"])}
    for number, (cell, outputs) in enumerate(zip(code, ran.outputs, strict=True), 1):
        for each in outputs:
            if spec := chart_of(each):
                of = digest(spec)
                each["data"][PICTURE] = known.get(of) or _lines(_drawn(spec))
                each["metadata"] = {PICTURE: {"of": of}}
        cell["outputs"], cell["execution_count"] = outputs, number
    (NOTEBOOKS / ran.name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def pictures(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The charts that have a picture. GitHub, nbconvert and JupyterLab show it where they do not know the version of the chart."""
    return [each for each in outputs if PICTURE in each.get("data", {}) and chart_of(each)]


def chart_of(output: Mapping[str, Any]) -> dict[str, Any] | None:
    return next((spec for kind, spec in output.get("data", {}).items() if CHART.fullmatch(kind)), None)


def digest(spec: Mapping[str, Any]) -> str:
    """What a picture is of: the chart, whatever the version of Vega-Lite."""
    return sha256(json.dumps(without_versions(spec), sort_keys=True).encode()).hexdigest()[:16]


def _drawn(spec: Mapping[str, Any]) -> str:
    """The chart as SVG. Only who renews the outputs needs vl-convert-python."""
    import vl_convert

    # It measures texts in a font as wide as these.
    return str(vl_convert.vegalite_to_svg(spec)).replace("sans-serif", "Arial, Helvetica, Liberation Sans, sans-serif")


def without_versions(outputs: object) -> object:
    """Outputs without the version of Vega-Lite in their charts, and without pictures, for a comparison."""
    if isinstance(outputs, list):
        cells = json.loads(json.dumps(outputs))
        for each in (each for cell in cells for each in pictures(cell)):
            del each["data"][PICTURE]
            each["metadata"] = {}
        outputs = cells
    text = CHART.sub("chart", json.dumps(outputs))
    return json.loads(re.sub(r'"\$schema": "[^"]*", |, "\$schema": "[^"]*"', "", text))


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
    if isinstance(value, alt.TopLevelMixin):
        (chart, _) = value._repr_mimebundle_()
        (kind,) = filter(CHART.fullmatch, chart)
        spec = chart[kind]
        text = f"Chart: {spec['title']['text']}. {spec['description']}"
        return {"data": {kind: spec, "text/plain": [text]}, "metadata": {}}
    data = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_svg_"):
        return {"data": {PICTURE: _lines(value._repr_svg_()), **data}, "metadata": {}}
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
