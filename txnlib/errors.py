"""The exceptions that this library raises, and the exit codes of its programs. Odd data becomes findings, not
exceptions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from shlex import quote
from typing import Final

#: An option in a message, and the space between it and its value.
_OPTION: Final = re.compile(r"(?<![\w/-])--([a-z][a-z-]+)(?: (?=[^\s:]+:|\())?")
#: The arguments of the library that have no option of the same name.
_ARGUMENTS: Final[Mapping[str, str]] = {
    "input": "capture=",
    "tables": "output=",
    "follow-links": "follow_links=True",
}


def meant(given: str, known: Iterable[str], after: str = "") -> str:
    """The known name that is most like an unknown one, in any case, as the end of a message; empty if none is.

    `after`: text to print behind the name.
    """
    from difflib import get_close_matches  # only for a message

    names = {name.casefold(): name for name in sorted(set(known), reverse=True)}
    near = get_close_matches(given.casefold(), names, n=1)
    return f"; did you mean {names[near[0]]}{after}?" if near else ""


class ExitCode(IntEnum):
    """How a job ends."""

    DONE = 0
    FAILED = 1
    #: Bad usage, bad configuration, or no readable input.
    UNUSABLE = 2
    #: A condition of `--fail-on` holds.
    MATCHED = 3
    #: Ctrl-C, as shells say it: 128 and the number of the signal.
    INTERRUPTED = 130


class TxnlibError(Exception):
    """Base class of the exceptions of txnlib. The message says what to do.

    It names arguments of the library, such as `output=`; `on_command_line` names options, such as `--output`, and has a
    hint.
    """

    #: How a job ends that raises it.
    exit_code = ExitCode.UNUSABLE

    def __init__(self, *given: object, hint: str = "") -> None:
        super().__init__(*given)
        self.hint = hint

    def says(self) -> str:
        """The message with options."""
        return " ".join(map(str, self.args))

    def on_command_line(self) -> str:
        """The message for somebody who typed a command."""
        return f"{self.says()}; {self.hint}" if self.hint else self.says()

    def __str__(self) -> str:
        return _OPTION.sub(lambda found: _ARGUMENTS.get(found[1], f"{found[1].replace('-', '_')}="), self.says())


class UsageError(TxnlibError):
    """An invalid option or combination of options."""


#: What to do without the embedded engine.
ON_SPARK: Final = "to go on with Spark: --engine spark"
#: Extra -> the package that must not be in the same environment: both are the module `pyspark`.
_OTHER_PYSPARK: Final[Mapping[str, str]] = {"local": "pyspark", "spark": "pyspark-client"}


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version  # only for a message

    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


class MissingExtraError(UsageError, ImportError):
    """A package is not installed that an extra of txnlib brings."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(what, package, extra, hint=ON_SPARK if extra == "local" else "")
        self.what, self.package, self.extra = what, package, extra

    def says(self) -> str:
        lacks, other = f"{self.what} needs {self.package}", _OTHER_PYSPARK.get(self.extra)
        if other not in (None, self.package) and _is_installed(other):
            return f"{lacks}: install 'txnlib[{self.extra}]' in another environment, because this one has {other}"
        # This Python's own pip, which knows txnlib from a clone or a wheel already, and needs no index that has it.
        remedy = f"{lacks}: {quote(sys.executable)} -m pip install 'txnlib[{self.extra}]'"
        if other:
            remedy += ". Where there is a Spark already, as on Databricks: pip install 'txnlib[audit]'"
        return remedy


class EngineError(TxnlibError):
    """The embedded engine cannot start, or has failed."""

    exit_code = ExitCode.FAILED

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint=ON_SPARK)

    def says(self) -> str:
        return f"the embedded engine: {super().says()}"


class ConfigError(TxnlibError):
    """A settings file or capture.json that cannot be used."""

    def __init__(self, path: str, key: str, problem: str) -> None:
        super().__init__(path, key, problem)
        self.path, self.key, self.problem = path, key, problem

    def says(self) -> str:
        where = f"{self.path}: {self.key}" if self.key else self.path
        return f"{where}: {self.problem}"


def refuse_fifo(path: str, option: str) -> None:
    """Raises ConfigError for a FIFO, of which reading may never end."""
    if Path(path).is_fifo():
        raise ConfigError(path, "", f"is no file; check {option}")


class UnreadableInputError(TxnlibError):
    """An input that cannot be read at all."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = path, problem, remedy

    def says(self) -> str:
        return f"{self.path}: {self.problem}. {self.remedy}"


class OtherSchemaError(TxnlibError):
    """Tables that another version of txnlib made, and this one cannot read."""

    def __init__(self, where: str, number: int, oldest: int, newest: int) -> None:
        super().__init__(where, number, oldest, newest)
        self.where, self.number, self.oldest, self.newest = where, number, oldest, newest

    def says(self) -> str:
        if self.number > self.newest:
            return (
                f"{self.where}: its tables are of a newer txnlib (schema {self.number}, this one knows up to"
                f" {self.newest}): use that one, or name another --output"
            )
        has = f"schema {self.number}" if self.number else "without a number of their schema"
        return (
            f"{self.where}: its tables are of an older txnlib ({has}, this one reads from {self.oldest} on): audit the"
            " capture again into another --output; what earlier audits saw is lost: first_seen and runs_seen start"
            " again"
        )


class DamagedTableError(TxnlibError):
    """A table that cannot be read, because somebody damaged its files."""

    exit_code = ExitCode.FAILED

    def __init__(self, path: str, said: str) -> None:
        super().__init__(path, said)
        self.path, self.said = path, said

    def says(self) -> str:
        return f"{self.path}: reading failed, the table is damaged ({self.said}). Run the audit again"


class MissingTableError(TxnlibError):
    """A table is missing that an earlier job should have written."""

    def __init__(self, name: str, job: str, where: str = "") -> None:
        super().__init__(name, job, where)
        self.name, self.job, self.where = name, job, where

    def says(self) -> str:
        table = f"table {self.name} is missing" + (f" in {self.where}" if self.where else "")
        return f"{table}: run the job {self.job} first, with the same --output"


#: What became of an unfinished audit, and what to do, by its status in `audit_runs`.
HAS_NOT_ENDED: Final = "has not ended. Wait for it; if it was killed, audit the same capture again"
UNFINISHED: Final = {
    "FAILED": "failed. Audit the same capture again",
    "INGESTED": "has read the logs only. Run the job reconstruct_state next, with the same --output",
    "RECONSTRUCTED": "has judged nothing yet. Run the job report_transactions next, with the same --output",
}


class UnfinishedError(MissingTableError):
    """A table does not exist yet, or only its folder does, because the audit that writes it has not ended."""

    def __init__(self, name: str, cluster: str, began_ms: int, status: str) -> None:
        super().__init__(name, "audit")
        self.cluster, self.began_ms, self.status = cluster, began_ms, status

    def says(self) -> str:
        return (
            f"table {self.name} is not there yet: the audit of cluster {self.cluster} that began at"
            f" {_instant(self.began_ms)} {UNFINISHED.get(self.status, HAS_NOT_ENDED)}"
        )


class StepError(TxnlibError):
    """A step of a run failed. Raised from the exception that made it fail."""

    exit_code = ExitCode.FAILED

    def __init__(self, step: str, cause: str, written: Sequence[str], remedy: str) -> None:
        super().__init__(step, cause, written, remedy)
        self.step, self.cause, self.written, self.remedy = step, cause, written, remedy

    def says(self) -> str:
        complete = f"{len(self.written)} ({', '.join(self.written)})" if self.written else "none"
        tables = f"Tables of this run that are complete: {complete}; all others are unchanged"
        return f"at {self.step}: {self.cause}. {tables}. {self.remedy}"


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
