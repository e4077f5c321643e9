"""The report as one page of HTML. Rows go into templates, and everything from a log is escaped.

The page needs no network, and its content security policy forbids it. Its script sorts, searches and copies. Without
it, the page has the same content.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from txnlib.ask import entries, page_rows, picture, report_sections, story_text
from txnlib.ask.abort_plan_text import permissions_of
from txnlib.ask.abort_script import abort_plan_script, waits_until
from txnlib.ask.explain import Explained
from txnlib.ask.nights import STYLE as NIGHTS_STYLE
from txnlib.ask.nights import chart as nights_chart
from txnlib.ask.own_command import PROGRAM
from txnlib.ask.page_rows import Page, is_offered
from txnlib.ask.queries import Row, key_of, transactions_of
from txnlib.ask.report import meaning
from txnlib.ask.transaction import TransactionStory
from txnlib.ask.words import ends_text
from txnlib.core.display import elapsed, instant, offset_text, printable, size, told, utc_time
from txnlib.core.kafka_commands import option, refusal, with_places

#: How commands of Kafka's tools begin. Nothing from a log is before the placeholder, and any later `$BOOTSTRAP` is
#: quoted text.
_BEGINNING: Final = re.compile(r"(kafka-[a-z-]+(?:\.sh)? --bootstrap-server )\$BOOTSTRAP(?= |$)")
_PLACEHOLDER: Final = Markup('<span class="bootstrap">$BOOTSTRAP</span>')
#: In an escaped text: an instant, a word with a hyphen, and a name of ours in capitals.
_PIECE: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r" (?P<time>\d\d:\d\d:\d\d(?:\.\d{3})?Z)|(?<![\w.&#-])(?P<name>\(?(?:--)?[\w.]+(?:-[\w.]+)+)(?![\w-])"
    r"|\b[A-Z]+(?:_[A-Z]+)+\b"
)
_TIME: Final = Markup('<time datetime="{0}T{1}">{0} {1}</time>')
_HYPHENED: Final = re.compile(r"--[^ ]+ (?!-)[^ ]+|[^ ]*-[^ ]*")
_NAME: Final = re.compile(r"\S*-\S*")
_CODE: Final = re.compile(r"`([^`]+)`")


def with_placeholder(command: str) -> Markup:
    """A command whose own $BOOTSTRAP is an element, which the script of the page replaces."""
    begun = _BEGINNING.match(command)
    if begun is None:
        return words(command)
    return words(begun[1]) + _PLACEHOLDER + words(command[begun.end() :])


def words(command: str) -> Markup:
    """A command whose words with a hyphen are elements, which the style keeps in one piece."""
    return Markup(_HYPHENED.sub(r'<span class="word">\g<0></span>', str(escape(printable(command)))))


def name(value: object) -> object:
    """Text in a table, in which no topic and no id breaks at a hyphen. A short element, because a page may have
    40,000."""
    return Markup(_NAME.sub(r"<bdi>\g<0></bdi>", str(escape(shown(value)))))


def timed(text: str) -> Markup:
    """A text in which each instant that we wrote is a `<time>`, and no line ends inside of a name but behind an
    underscore."""
    return Markup(_PIECE.sub(_piece, str(escape(told(text)))))


def _piece(found: re.Match[str]) -> str:
    if found["day"]:
        return str(_TIME.format(found["day"], found["time"]))
    return f'<span class="word">{found[0]}</span>' if found["name"] else found[0].replace("_", "_<wbr>")


def advice(text: str) -> Markup:
    """A sentence of our own runbook, with code for what is in backticks."""
    return Markup(
        _CODE.sub(
            lambda code: f"<code>{words(Markup(code[1]))}</code>",
            str(escape(printable(f"{text[:1].upper()}{text[1:]}"))),
        )
    )


# ---- Anchors of the report page


_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")


def encoded(name: str) -> str:
    """A name with each character outside of `[A-Za-z0-9._-]` as `~HEX~`, the number of the character."""
    return _ODD.sub(lambda match: f"~{ord(match[0]):x}~", name)


def transaction_anchor(row: Row) -> str:
    """`payments-0-24`: topic, partition and start offset of an open transaction."""
    return f"{encoded(row['topic'])}-{row['partition']}-{row['start_offset']}"


def partition_anchor(kind: str, row: Row) -> str:
    """`lag:payments-0`: what the page says of a partition. No topic has a colon, so no other anchor is the same."""
    return f"{kind}:{encoded(row['topic'])}-{row['partition']}"


def broken_anchor(broken: TransactionStory) -> str:
    """`split:payments-batch-7-3`: a transaction that is split or half-marked, by its id and number."""
    return f"split:{encoded(str(broken.transactional_id))}-{broken.number}"


class Ids:
    """The ids of one page. Each is given to one element only, whatever the tables contain."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def once(self, anchor: str) -> Markup:
        """The attribute ` id="…"` for the first element with an anchor; nothing for the others."""
        if anchor in self._given:
            return Markup()
        self._given.add(anchor)
        return Markup(' id="{}"').format(anchor)


# ---- The page


#: Number of cards of a section that are open, and that have a line each. The others are folded together.
UNFOLDED: Final = 3
LISTED: Final = 10
#: Number of rows of a table that are in view; the others are folded.
ROWS: Final = 15


def render_page(page: Page) -> str:
    """The page as one HTML document in UTF-8, including style and script."""
    style, script = _source("page.css") + picture.STYLE + NIGHTS_STYLE, _source("page.js")
    template = _environment().get_template("page.html")
    return template.render(
        page=page,
        report=page.report,
        navigation=report_sections.navigation(page),
        sections=report_sections.on_page(page),
        ids=Ids(),
        style=Markup(style),
        script=Markup(script),
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none';"
            " form-action 'none'"
        ),
    )


def drawing(story: Explained, name: str) -> Markup:
    """The picture of a story, wide for screens and paper and narrow for phones: the style shows one of them."""
    return Markup("\n").join(
        Markup(picture.drawing(story.events, story.as_of_ms, story.verdict, width, f"{name}-{width}"))
        for width in (picture.WIDE, picture.NARROW)
    )


def shown(value: object) -> object:
    """A value for the page: characters that could forge a line or change the text direction are spelt out, then
    escaped."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return "–"
    return value if isinstance(value, bool | int | float) else printable(value)


def command_of(page: Page, command: str) -> str:
    """The txn-audit command that shows more of this run; a query if only Spark can open the tables."""
    if page.tables is None:
        table = "abort_plan" if command == "abort-plan" else command.replace("-", "_")
        return f"SELECT * FROM {page.report.output}.{table} WHERE run_id = '{page.run_id}'"
    return f"{PROGRAM} {command} {_run_of(page)}"


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
    return with_places(
        f"{PROGRAM} explain", [row["topic"], str(row["partition"]), str(row["start_offset"])], _run_of(page)
    )


def transaction_command(page: Page, broken: TransactionStory) -> str | None:
    """The command that shows one transaction whole; None if it cannot be written on a command line."""
    own = str(broken.transactional_id)
    if page.tables is None or refusal(own) is not None:
        return None
    return with_places(f"{PROGRAM} transaction", [own], f"--number {broken.number} {_run_of(page)}".rstrip())


def abort_script(page: Page) -> Markup | None:
    """The script of the steps of the plan that are to be run now; None if there is none, or if the page has not all of
    them."""
    if not any(is_offered(row) for row in page.plan) or sum(page.report.actions.values()) > len(page.plan):
        return None
    return escape(abort_plan_script(page.plan, page.run_id, instant(page.report.as_of_ms)))


def folded(rows: Sequence[Row], shown: int = ROWS) -> tuple[Sequence[Row], Sequence[Row]]:
    """The rows in view, and those that are folded. A fold hides more than one row."""
    return (rows, ()) if len(rows) <= shown + 1 else (rows[:shown], rows[shown:])


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
    return files("txnlib").joinpath("page", "templates", name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


#: Functions that templates may call.
_GLOBALS: Final[dict[str, Any]] = {
    "UNFOLDED": UNFOLDED,
    "LISTED": LISTED,
    "abort_script": abort_script,
    "page_rows": page_rows,
    "report_sections": report_sections,
    "advice": advice,
    "anchor": transaction_anchor,
    "broken_anchor": broken_anchor,
    "ends_text": ends_text,
    "meaning": meaning,
    "permissions_of": permissions_of,
    "waits_until": lambda row: " ".join(waits_until(row)),
    "transactions_of": transactions_of,
    "command_of": command_of,
    "drawing": drawing,
    "duration": elapsed,
    "encoded": encoded,
    "explain_command": explain_command,
    "folded": folded,
    # An instant as `<time>`; as plain text if it is unknown or outside of the calendar.
    "instant": lambda ms: timed(utc_time(ms)),
    "is_offered": is_offered,
    "key_of": key_of,
    "name": name,
    "nights_chart": lambda of: Markup(nights_chart(of)),
    "offset_text": offset_text,
    "partition_anchor": partition_anchor,
    "size": size,
    "timed": timed,
    "transaction_command": transaction_command,
    "utc_time": utc_time,
    "with_placeholder": with_placeholder,
    "words": words,
    "entries": entries,
    "told": story_text,
}
