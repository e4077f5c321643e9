"""A small SVG: shapes and text on a background of its own, so that it reads on light and on dark pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Final

INK: Final = "#1f2328"
MUTED: Final = "#59636e"
MISSING: Final = "#b5162b"
STABLE: Final = "#bc4c00"
PAPER: Final = "#f6f8fa"
FONT: Final = "font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


@dataclass(frozen=True, slots=True)
class Paint:
    fill: str
    stroke: str


GREY: Final = Paint("#e4e8ec", "#818b98")
BLUE: Final = Paint("#d3ebff", "#0969da")
AMBER: Final = Paint("#fff3b8", "#9a6700")
GREEN: Final = Paint("#d1f5da", "#1a7f37")


@dataclass(slots=True)
class Drawing:
    """Shapes in the order in which they are drawn; `title` and `about` are read to whoever does not see them."""

    width: int
    height: int
    title: str
    about: str
    shapes: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, paint: Paint, *, is_missing: bool = False) -> None:
        dashes = ' stroke-dasharray="4 3"' if is_missing else ""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{paint.fill}" '
            f'stroke="{paint.stroke}" stroke-width="1.5"{dashes}/>'
        )

    def disc(self, x: float, y: float, paint: Paint, *, is_missing: bool = False) -> None:
        dashes = ' stroke-dasharray="3 2.5"' if is_missing else ""
        self.shapes.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="10" fill="{paint.fill}" stroke="{paint.stroke}"'
            f' stroke-width="1.5"{dashes}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        colour: str = INK,
        anchor: str = "start",
        is_bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if is_bold else ""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"'
            f' text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def path(
        self,
        points: list[tuple[float, float]],
        colour: str,
        *,
        width: float = 1.5,
        is_dashed: bool = False,
        is_arrow: bool = False,
    ) -> None:
        """Straight lines from point to point."""
        steps = "L".join(f"{x:g} {y:g}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if is_dashed else ""
        head = f' marker-end="url(#{_head(colour)})"' if is_arrow else ""
        self.shapes.append(f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}{head}/>')

    def render(self) -> str:
        used = [colour for colour in (INK, MUTED, MISSING) if f"#{_head(colour)}" in "".join(self.shapes)]
        heads = [
            f'<marker id="{_head(colour)}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
            for colour in used
        ]
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
                    f' width="{self.width}" height="{self.height}" role="img" aria-labelledby="title about" {FONT}>'
                ),
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="about">{escape(self.about)}</desc>',
                "<!-- rendered by docs/render.py; do not edit -->",
                f"<defs>{''.join(heads)}</defs>",
                f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}" stroke="#d0d7de"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )


def _head(colour: str) -> str:
    return f"head-{colour[1:]}"
