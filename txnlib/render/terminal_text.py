"""The report on a terminal: fitted to its width, with coloured verdicts. Piped, it is plain text."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from txnlib.queries.summary import PREPARED, Summary
from txnlib.render.grid import STYLES
from txnlib.render.report_text import PROGRAM, render
from txnlib.render.text_width import columns

#: Text to highlight -> its style: a heading, or a verdict after its count.
_HEADING: Final = re.compile(r"^(?: +\d+ )?([A-Z][A-Z ]+[A-Z])\b", re.MULTILINE)
_ENTRY: Final = re.compile(r"^  (\S.*?)   producer \d+ epoch", re.MULTILINE)
_LABEL: Final = re.compile(r"^  [a-z][a-z ]{1,7}(?=  )", re.MULTILINE)
_COMMAND: Final = re.compile(r"^  (?:do|then) +(.*)$", re.MULTILINE)
_OTHER_STYLES: Final = {PREPARED: "cyan", "OPEN": "green"}


def program() -> str:
    """What calls txn-audit here: its name, or its path in an environment that is not activated."""
    beside = Path(sys.executable).with_name(PROGRAM)
    if shutil.which(PROGRAM) is not None or not beside.exists():
        return PROGRAM
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))


def terminal_report(summary: Summary, *, is_terminal: bool) -> str:
    """The report as it is printed."""
    text = render(summary, columns(is_terminal=is_terminal), program())
    return _styled(text) if is_terminal else f"{text}\n"


def _styled(text: str) -> str:
    # Imported here, because piped output does not need it.
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    for match in _HEADING.finditer(text):
        styled.stylize(STYLES.get(match[1], _OTHER_STYLES.get(match[1], "bold")), *match.span(1))
    for pattern, style, group in ((_ENTRY, "bold", 1), (_LABEL, "dim", 0), (_COMMAND, "bold", 1)):
        for match in pattern.finditer(text):
            if "write a marker" not in match[0]:
                styled.stylize(style, *match.span(group))
    console = Console(soft_wrap=True)  # supports NO_COLOR and TERM; commands are not broken, so that they can be copied
    with console.capture() as captured:
        console.print(styled)
    return captured.get()
