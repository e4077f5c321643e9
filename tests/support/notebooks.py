"""Notebooks, run cell by cell: the outputs that Jupyter would keep.

A kernel of its own would start a second Spark.
"""

import ast
import base64
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
#: The kind of the pictures in the files. JupyterLab hides an SVG, and any chart, in a notebook that it has not run
#: itself.
PICTURE, SVG = "image/png", "image/svg+xml"
#: The name of the type of a chart has the version of Vega-Lite, and so has its schema.
CHART = re.compile(r"application/vnd\.vegalite\.v\d+(\+|\.)json")


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
    """Writes the outputs into the notebook, as Jupyter formats its files; beside each chart or SVG, a picture of it."""
    notebook = content(ran.name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    known = {
        each["metadata"][PICTURE]["of"]: each["data"][PICTURE] for cell in code for each in pictures(cell["outputs"])
    }
    for number, (cell, outputs) in enumerate(zip(code, ran.outputs, strict=True), 1):
        for each in outputs:
            if (drawing := drawing_of(each)) is not None:
                of = digest(drawing)
                each["data"][PICTURE] = known.get(of) or base64.b64encode(_drawn(drawing)).decode()
                each["metadata"] = {PICTURE: {"of": of}}
        cell["outputs"], cell["execution_count"] = outputs, number
    (NOTEBOOKS / ran.name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def pictures(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs that have a picture. GitHub, nbconvert and JupyterLab show it where nobody has run the notebook."""
    return [each for each in outputs if PICTURE in each.get("data", {})]


def drawing_of(output: Mapping[str, Any]) -> dict[str, Any] | str | None:
    """The chart or the SVG of an output; None if it is neither."""
    data = output.get("data", {})
    svg = "".join(data.get(SVG, ())) or None
    return next((spec for kind, spec in data.items() if CHART.fullmatch(kind)), svg)


def digest(drawing: Mapping[str, Any] | str) -> str:
    """What a picture is of: the SVG, or the chart, whatever the version of Vega-Lite."""
    return sha256(json.dumps(without_versions(drawing), sort_keys=True).encode()).hexdigest()[:16]


def _drawn(drawing: Mapping[str, Any] | str) -> bytes:
    """The chart or SVG as PNG of few colours. Only who renews the outputs needs vl-convert-python and Pillow."""
    import vl_convert
    from PIL import Image

    draw = vl_convert.svg_to_png if isinstance(drawing, str) else vl_convert.vegalite_to_png
    drawn = io.BytesIO()
    Image.open(io.BytesIO(draw(drawing, scale=1.5))).convert("RGBA").quantize(64).save(drawn, "PNG", optimize=True)
    return drawn.getvalue()


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
        return {"data": {SVG: _lines(value._repr_svg_()), **data}, "metadata": {}}
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
