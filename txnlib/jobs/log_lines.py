"""Lines on stderr: progress and errors, as text or as JSON."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)


@dataclass(slots=True)
class LogLines:
    """How lines are written. stdout is for the report."""

    form: str = TEXT
    is_quiet: bool = False

    def progress(self, text: str) -> None:
        """Writes a line of progress with its time, by the clock of this machine. In one write, because steps run in parallel."""
        if not self.is_quiet:
            self._write("INFO", text, is_timed=True)

    def error(self, text: str) -> None:
        """Writes an error, also if progress is not asked for. As text it has no time: it is what a shell or cron shows."""
        self._write("ERROR", text, is_timed=False)

    def _write(self, level: str, text: str, *, is_timed: bool) -> None:
        now = datetime.now(UTC)
        is_terminal = sys.stderr.isatty()
        if self.form == JSON:
            time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"time": time, "level": level, "message": text})
        elif is_timed:
            line = f"{now:{'%H:%M:%SZ' if is_terminal else '%Y-%m-%dT%H:%M:%SZ'}} {text}"
        else:
            line = text
        # On a terminal, the line replaces Spark's progress bar, which Spark then redraws below it.
        sys.stderr.write(f"\r\x1b[K{line}\n" if is_terminal else f"{line}\n")
        sys.stderr.flush()


#: Of this process. A job sets it before it does anything else.
LINES: Final = LogLines()


def set_up(argv: Sequence[str]) -> None:
    """Sets how lines are written, from a command line that may still be found to be wrong."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--log-format", default=TEXT)
    parser.add_argument("--quiet", action="store_true")
    try:
        given, _ = parser.parse_known_args(list(argv))
    except Exception:  # the job's own parser says what is wrong
        return
    LINES.form, LINES.is_quiet = (given.log_format if given.log_format in FORMATS else TEXT), given.quiet
