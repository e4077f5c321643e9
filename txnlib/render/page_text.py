"""Text of the report page: commands, instants and advice as markup."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

from txnlib.core.display import printable, utc_time

#: How commands of Kafka's tools begin. Nothing from a log is before the placeholder, and any later `$BOOTSTRAP` is quoted text.
_BEGINNING: Final = re.compile(r"(kafka-[a-z-]+\.sh --bootstrap-server )\$BOOTSTRAP(?= |$)")
_PLACEHOLDER: Final = Markup('<span class="bootstrap">$BOOTSTRAP</span>')
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\dZ)")
_TIME: Final = Markup('<time datetime="{0}T{2}">{0}{1}{2}</time>')
_CODE: Final = re.compile(r"`([^`]+)`")


def with_placeholder(command: str) -> Markup:
    """A command whose own $BOOTSTRAP is an element, which the script of the page replaces."""
    begun = _BEGINNING.match(command)
    if begun is None:
        return escape(printable(command))
    return escape(begun[1]) + _PLACEHOLDER + escape(printable(command[begun.end() :]))


def time_of(ms: int | None) -> Markup:
    """An instant as `<time>`; as plain text if it is unknown or outside of the calendar."""
    return timed(utc_time(ms))


def timed(text: str) -> Markup:
    """A text in which each instant that we wrote is a `<time>`."""
    return Markup(_INSTANT.sub(lambda match: _TIME.format(*match.groups()), str(escape(printable(text)))))


def advice(text: str) -> Markup:
    """A sentence of our own runbook, with code for what is in backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(printable(f"{text[:1].upper()}{text[1:]}")))))
