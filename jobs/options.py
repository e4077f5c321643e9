"""The options of the jobs, one row each. Parser, help and docs are made from these rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from txnlib.config import default_of
from txnlib.core.instants import parse_instant
from txnlib.errors import UsageError
from txnlib.readers.local_files import shown
from txnlib.readers.start import BEGINNING, STARTS
from txnlib.report.whole_file import check_whole_file
from txnlib.stages.asked import FULL, MODES, check_number

#: `--summary -`: the JSON takes the place of the report.
STDOUT: Final = "-"
VERDICT_NAMES: Final = ("hanging", "late", "stuck", "suspect", "unknown")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, the jobs that take it, what it says in --help, and what argparse needs to know."""

    name: str
    jobs: frozenset[str]
    about: str
    how: dict[str, Any] = field(default_factory=dict)


AUDIT: Final = "audit"
INGEST: Final = "ingest_dumps"
RECONSTRUCT: Final = "reconstruct_state"
REPORT: Final = "report_transactions"
_ALL: Final = frozenset({AUDIT, INGEST, RECONSTRUCT, REPORT})
_READS: Final = frozenset({AUDIT, INGEST})
_REPORTS: Final = frozenset({AUDIT, REPORT})


def _minutes(setting: str) -> int:
    return default_of(setting) // 60_000


OPTIONS: Final = (
    Option(
        "--input",
        _READS,
        "folder or file with copies of logs, local or s3://, gs://, abfss://, hdfs://; repeatable",
        {"action": "append", "metavar": "PATH"},
    ),
    Option("--output", _ALL, "folder of the Delta tables", {"metavar": "PATH"}),
    Option("--schema", _ALL, "catalog schema of the Delta tables, instead of --output", {"metavar": "CATALOG.SCHEMA"}),
    Option("--conf", _READS, "settings file (TOML)", {"metavar": "FILE"}),
    Option("--cluster", _ALL, "name of the cluster; default: that of capture.json, else of the folder", {"metavar": "NAME"}),
    Option(
        "--as-of",
        _ALL,
        "instant to judge at: ISO-8601, epoch ms, or 'capture' (default: newest capture instant)",
        {"metavar": "TIME"},
    ),
    Option(
        "--max-transaction-timeout",
        _READS,
        "age in minutes from which nobody's transaction hangs, as for find-hanging "
        f"(default {_minutes('max_transaction_timeout_ms')})",
        {"type": int, "metavar": "MINUTES"},
    ),
    Option(
        "--transaction-max-timeout-ms",
        _READS,
        f"the brokers' transaction.max.timeout.ms (default {default_of('transaction_max_timeout_ms')})",
        {"type": int, "metavar": "MS"},
    ),
    Option(
        "--stuck-after",
        _READS,
        f"minutes after the decision from which a missing marker is STUCK (default {_minutes('stuck_after_ms')})",
        {"type": int, "metavar": "MINUTES"},
    ),
    Option(
        "--coordinator-partitions",
        _READS,
        "partitions of __transaction_state (default: capture.json, else what the ids prove)",
        {"type": int, "metavar": "N"},
    ),
    Option(
        "--fail-on",
        _REPORTS,
        f"exit with 3 if such a transaction is found: {','.join(VERDICT_NAMES)}",
        {"metavar": "VERDICTS"},
    ),
    Option("--report", _REPORTS, "write the report as a page, too: one HTML file that needs no network", {"metavar": "FILE.html"}),
    Option(
        "--metrics",
        _REPORTS,
        "write what became of the audit as gauges for Prometheus, too: a file for node_exporter's textfile collector",
        {"metavar": "FILE.prom"},
    ),
    Option(
        "--summary",
        _REPORTS,
        "write the report's numbers as JSON, too; '-': to stdout, in place of the report",
        {"metavar": "FILE.json"},
    ),
    Option(
        "--start",
        _READS,
        "read each log from its beginning (default), or from the newest snapshot of its producers: faster, and knows as much "
        "about what is open, but only of transactions that ended since then",
        {"choices": STARTS, "default": BEGINNING},
    ),
    Option(
        "--mode",
        _READS,
        "read every log whole (full, default), or of each segment only what is new since the cluster's last audit "
        "(incremental): the tables are the same",
        {"choices": MODES, "default": FULL},
    ),
    Option(
        "--follow-links",
        _READS,
        "read also what links in the input lead to outside of it (default: name them in quarantine)",
        {"action": "store_true"},
    ),
    Option(
        "--keep-days",
        _REPORTS,
        "remove the cluster's audits that are so many days older than this one from the tables (default: keep all)",
        {"type": int, "metavar": "DAYS"},
    ),
    Option(
        "--take-over",
        _ALL,
        "go on although an audit of the cluster is noted as running, which you know to have died on another machine",
        {"action": "store_true"},
    ),
    Option(
        "--debug",
        _ALL,
        "print the traces of a failure, and those of Spark's log; else a failure names the file that they are in",
        {"action": "store_true"},
    ),
    Option("--dry-run", _READS, "say what would be read and as of when, and stop", {"action": "store_true"}),
)


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(job: str, about: str, argv: Sequence[str]) -> argparse.Namespace:
    """The options of one job. Raises UsageError for what cannot be used."""
    parser = _Parser(prog=f"./spark-submit.sh {job}", description=about, allow_abbrev=False)
    for option in OPTIONS:
        if job in option.jobs:
            parser.add_argument(option.name, help=option.about, **option.how)
    options = parser.parse_args(argv)
    for name, value in vars(options).items():
        if name != "input" and isinstance(value, str) and not _is_utf_8(value):
            raise UsageError(f"--{name.replace('_', '-')} {shown(value)}: is no UTF-8")
    if job in _READS and not options.input:
        raise UsageError("--input is missing: name the folder with the copies of the logs")
    if not options.output and not options.schema and not getattr(options, "dry_run", False):
        raise UsageError("--output is missing: name the folder for the Delta tables (or --schema)")
    if job in _REPORTS:
        options.fail_on = parse_fail_on(options.fail_on)
        check_number("keep_days", options.keep_days, "--keep-days ")
        for file in (options.report, options.metrics, None if options.summary == STDOUT else options.summary):
            if file is not None:
                check_whole_file(file)
    options.as_of_ms = None if options.as_of in (None, "capture") else parse_instant(options.as_of)
    return options


def _is_utf_8(value: str) -> bool:
    """Whether a word of the command line is text; of `--input`, any name of a file will do."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def parse_fail_on(given: str | None) -> frozenset[str]:
    """Verdicts, in capitals, on which to exit with 3."""
    names = [name.strip().lower() for name in (given or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in VERDICT_NAMES]
    if unknown:
        raise UsageError(f"--fail-on {','.join(unknown)}: known are {', '.join(VERDICT_NAMES)}")
    return frozenset(name.upper() for name in names)
