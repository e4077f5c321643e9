"""How the audits of a cluster compare over time: what was held, how much waited, and for how long, as a chart.

Only what needs somebody counts, not what a coordinator ends in time. No plotting library draws it: the page is one file
without scripts, whose chart takes the page's colours, light or dark, and its size of text. Three rows of bars are not
worth 60 MB more in every installation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from txnlib.ask.picture import image_of
from txnlib.ask.queries import AUDIT_RUNS, Filter, StoredRun, ms
from txnlib.ask.words import LOOKS_LATE, NAME
from txnlib.core.display import duration, utc_time

#: Most audits in a chart: the newest.
MOST_NIGHTS: Final = 90
_WIDE, _HIGH, _LEFT, _GAP = 640, 54, 8, 34
_COUNTS: Final = f"{NAME} NOT IN ('OPEN', '{LOOKS_LATE}') AND coalesce(\"holds\", TRUE) AND \"blocked_offsets\" > 0"
_HELD: Final = {
    "held": f"count(CASE WHEN {_COUNTS} THEN 1 END)",
    "offsets": f'coalesce(sum(CASE WHEN {_COUNTS} THEN "blocked_offsets" END), 0)',
    "since": f'min(CASE WHEN {_COUNTS} THEN "blocks_since" END)',
}
#: The colours are those of the page, or else of its light version.
STYLE: Final = """\
.nights { display: block; width: 100%; height: auto; }
.nights text { fill: var(--ink, #1b1f24); font: 12px system-ui, "DejaVu Sans", sans-serif; }
.nights rect { fill: var(--hanging, #b42318); }
.nights line { stroke: var(--line, #d0d7de); }
@media (max-width: 40rem) { .nights text { font-size: 19px; } }
"""


@dataclass(frozen=True, slots=True)
class Night:
    """One audit: the partitions held by a transaction that needs somebody, the offsets that waited there, and for how
    many ms the oldest holder had been open; None if there was none, or no clock tells."""

    run_id: str
    as_of_ms: int
    held: int = 0
    offsets: int = 0
    age_ms: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Nights:
    """The audits of a cluster, the oldest first. A notebook shows their chart."""

    of: Sequence[Night]

    def __iter__(self) -> Iterator[Night]:
        return iter(self.of)

    def __len__(self) -> int:
        return len(self.of)

    def __repr__(self) -> str:
        return summary(self.of)

    def _repr_html_(self) -> str:
        return image_of(chart(self.of), STYLE, _WIDE, escape(summary(self.of)))


def nights(run: StoredRun) -> Nights:
    """The finished audits of the cluster up to this one. Reads one row for each of them."""
    columns = ("run_id", "as_of", "status")
    newest: list[Filter] = [("cluster", "=", run.cluster), ("status", "=", "DONE")]
    runs = run.tables.rows(AUDIT_RUNS, columns, newest, order='"as_of" DESC')
    finished = [row for row in runs if (ms(row["as_of"]) or 0) <= run.as_of_ms][:MOST_NIGHTS]
    ids = [row["run_id"] for row in finished]
    chosen = ", ".join(f'{expression} AS "{name}"' for name, expression in _HELD.items())
    of_ids: list[Filter] = [("run_id", "IN", ids)]
    rows = run.tables.ask("open_transactions", f'"run_id", {chosen}', of_ids, ' GROUP BY "run_id"') if ids else []
    held = {row["run_id"]: row for row in rows}
    found = []
    for row in reversed(finished):
        at, own = ms(row["as_of"]) or 0, held.get(row["run_id"])
        since = None if own is None else ms(own["since"])
        age_ms = None if since is None else max(at - since, 0)
        found.append(Night(row["run_id"], at, own["held"] if own else 0, own["offsets"] if own else 0, age_ms))
    return Nights(found)


#: Title of a chart -> the number of a night, and that number in words.
_CHARTS: Final[Sequence[tuple[str, Callable[[Night], int], Callable[[int], str]]]] = (
    ("partitions held", lambda night: night.held, str),
    ("offsets that wait there", lambda night: night.offsets, str),
    ("the oldest has been open for", lambda night: night.age_ms or 0, duration),
)


def summary(of: Sequence[Night]) -> str:
    """The chart in a sentence, for those who cannot see it."""
    if not of:
        return "No audit has ended."
    said = [f"{title}: {words(number(of[0]))} then, {words(number(of[-1]))} now" for title, number, words in _CHARTS]
    return f"{len(of)} audits from {utc_time(of[0].as_of_ms)} to {utc_time(of[-1].as_of_ms)}; {'; '.join(said)}."


def chart(of: Sequence[Night], name: str = "nights") -> str:
    """Bars for each audit, as an element of a page that has `STYLE`. `name`: what its ids begin with."""
    height = len(_CHARTS) * (_HIGH + _GAP)
    parts = [
        f'<svg class="nights" viewBox="0 0 {_WIDE} {height}" role="img" aria-labelledby="{name}-title {name}-says">',
        f'<title id="{name}-title">What needed somebody, audit by audit</title>',
        f'<desc id="{name}-says">{escape(summary(of))}</desc>',
    ]
    step = (_WIDE - 2 * _LEFT) / max(len(of), 1)
    for place, (title, number, words) in enumerate(_CHARTS):
        top = place * (_HIGH + _GAP) + 20
        most = max(map(number, of), default=0)
        parts.append(f'<text x="{_LEFT}" y="{top - 6}">{title}: at most {escape(words(most))}</text>')
        for index, night in enumerate(of):
            tall = _HIGH * number(night) / most if most else 0.0
            x, y = _LEFT + index * step, top + _HIGH - tall
            says = f"{utc_time(night.as_of_ms)}: {words(number(night))}"
            size = f'width="{max(step - 1, 1):.1f}" height="{tall:.1f}"'
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size}><title>{escape(says)}</title></rect>')
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDE - _LEFT}" y1="{top + _HIGH}" y2="{top + _HIGH}"/>')
    for at, anchor, edge in ((_LEFT, "start", of[:1]), (_WIDE - _LEFT, "end", of[-1:] if len(of) > 1 else [])):
        said = "".join(utc_time(each.as_of_ms) for each in edge)
        parts.append(f'<text x="{at}" y="{height - 2}" text-anchor="{anchor}">{said}</text>')
    return "\n".join([*parts, "</svg>"])
