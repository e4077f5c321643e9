"""The report as one page of HTML. Rows go into templates, and everything from a log is escaped.

The page needs no network, and its content security policy forbids it. It also works without its script, which only copies commands.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from txnlib.core.display import duration, printable, size, utc_time
from txnlib.core.verdicts.shell_words import option, refusal, with_places
from txnlib.queries import page_rows
from txnlib.queries.needed_copies import needed_for
from txnlib.queries.page_rows import Page, Story
from txnlib.queries.rows import Row
from txnlib.queries.summary import PREPARED, SECTIONS, cards
from txnlib.render import page_charts, page_head, report_entries, story_text
from txnlib.render.atomic_file import write_whole_file
from txnlib.render.page_timeline import HEIGHT, LEFT, RIGHT, WIDTH, clock, plot

#: Number of cards that are open; the others are folded.
UNFOLDED: Final = 3
HISTORY_WIDTH: Final = 700


def render_page(page: Page) -> str:
    """The page as one HTML document in UTF-8, including style and script."""
    style, script = _source("page.css"), _source("page.js")
    template = _environment().get_template("page.html")
    return template.render(
        page=page,
        summary=page.summary,
        answer=page_head.answer(page),
        sections=[(name, page.summary.transactions[name]) for name in SECTIONS if page.summary.transactions.get(name)],
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'",
    )


def write_page(page: Page, file: str) -> None:
    """Writes the page to a file, which is complete or absent."""
    write_whole_file(file, render_page(page))


def shown(value: object) -> object:
    """A value for the page: characters that could forge a line or change the text direction are spelt out, then escaped."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return "–"
    return value if isinstance(value, bool | int | float) else printable(value)


def command_of(page: Page, command: str) -> str:
    """The txn-audit command that shows more of this run; a query if only Spark can open the tables."""
    if page.tables is None:
        table = "abort_plan" if command == "abort-plan" else command.replace("-", "_")
        return f"SELECT * FROM {page.summary.output}.{table} WHERE run_id = '{page.run_id}'"
    return f"txn-audit {command} {_run_of(page)}"


def _run_of(page: Page) -> str:
    """The options that name a run, unless they cannot be written on a command line."""
    named = {"--tables": str(page.tables), "--run": page.run_id}
    return " ".join(option(name, value) for name, value in named.items() if refusal(value) is None)


def explain_command(page: Page, row: Row) -> str:
    """The command that explains one transaction."""
    if page.tables is None:
        return command_of(page, "open_transactions")
    if refusal(row["topic"]) is not None:
        return command_of(page, "list")
    return with_places("txn-audit explain", [row["topic"], str(row["partition"]), str(row["start_offset"])], _run_of(page))


def story_of(page: Page, row: Row) -> Story | None:
    """The story of a transaction, if it was loaded."""
    return page.stories.get((row["topic"], row["partition"], row["producer_id"], row["start_offset"]))


def at_once(plan: Sequence[Row]) -> list[list[Row]]:
    """Rows of the plan, grouped by the command that settles them."""
    groups: dict[object, list[Row]] = {}
    for row in plan:
        key = row["number"] if row["command"] is None else (row["action"], row["command"])
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def can_be_pasted(command: str) -> bool:
    """Whether the page shows the command literally. Ids may contain characters that should not be pasted unseen."""
    return printable(command) == command


def pieces(section: str, page: Page) -> int:
    """The number of transactions in a section, shown or not."""
    if section == PREPARED:
        return len(page.summary.transactions.get(section, []))
    return int(page.summary.counts.get("verdicts", {}).get(section, 0))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_GLOBALS)
    return environment


def _source(name: str) -> str:
    """A template. Read through the package, which may be in a zip file."""
    return files("txnlib").joinpath("render", "templates", name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


#: Functions that templates may call.
_GLOBALS: Final[dict[str, Any]] = {
    "UNFOLDED": UNFOLDED,
    "SHOWN_CAUSES": report_entries.SHOWN_CAUSES,
    "limits": page_rows,
    "axis": {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT},
    "history_width": HISTORY_WIDTH,
    "stacked": page_charts.STACKED,
    "at_once": at_once,
    "behind": report_entries.behind,
    "blocks": report_entries.blocks,
    "needed_for": needed_for,
    "can_be_pasted": can_be_pasted,
    "cards": cards,
    "clock": clock,
    "columns": story_text.columns,
    "columns_of": page_charts.columns_of,
    "command_of": command_of,
    "duration": duration,
    "explain_command": explain_command,
    "heading": page_head.heading,
    "instant": utc_time,
    "lines": story_text.lines,
    "owner": report_entries.owner,
    "pieces": pieces,
    "plot": plot,
    "producer": report_entries.producer,
    "seen": report_entries.seen,
    "size": size,
    "squares": page_charts.squares,
    "story_of": story_of,
    "waiting": report_entries.waiting,
    "where": report_entries.where,
}
