"""Quoting for the shell of POSIX: words that reach a command unchanged, whatever a log put into them.

They mean the same in sh, dash and bash. Unprintable characters are written as octal bytes for `printf`, so that a command shows
what it does and means the same in any locale. A value that begins with a dash is written after `=`, which the parsers of Kafka's
tools support, too: argparse4j (kafka-transactions.sh), joptsimple (all others) and argparse (txn-audit) split a long option at
its first `=`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

#: Characters that `printf`, or the quotes around its argument, may read as something else than themselves.
_SPECIAL: Final = frozenset("\\%'-!")


def word(text: str) -> str:
    """The word for a text. Raises ValueError if it cannot be written on a command line (`refusal`)."""
    why = refusal(text)
    if why is not None:
        raise ValueError(why)
    if text.isprintable():
        return shlex.quote(text)
    return f"\"$(printf '{''.join(map(_escaped, text))}')\""


def option(name: str, value: str) -> str:
    """An option with its value, as words. Raises ValueError as `word` does."""
    return f"{name}{'=' if value.startswith('-') else ' '}{word(value)}"


def with_places(command: str, places: Sequence[str], options: str) -> str:
    """A command with positional arguments and options. Options come first if an argument looks like one. Raises as `word` does."""
    words = " ".join(map(word, places))
    is_odd = any(place.startswith("-") for place in places)
    return f"{command} {options} -- {words}" if is_odd else f"{command} {words} {options}"


def refusal(text: str) -> str | None:
    """Why a text cannot be written on a command line; None if it can."""
    if "\0" in text:
        return "it holds a NUL character, at which an argument ends"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it holds half a surrogate pair, which UTF-8 cannot write"
    if text.endswith("\n"):
        return "it holds a line feed at its end, which a shell takes away"
    return None


def _escaped(character: str) -> str:
    if character.isprintable() and character not in _SPECIAL:
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())
