"""The options of the jobs, one row each. Parser, help and docs are made from these rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePath
from typing import Any, Final, NoReturn

from txnlib.ask.acknowledgements import read_acknowledgements
from txnlib.ask.command_output import check_whole_file
from txnlib.core.instants import parse_instant
from txnlib.core.kafka.constants import MAX_INT32
from txnlib.engine.choice import ENGINES
from txnlib.errors import UsageError
from txnlib.jobs.fail_on import parse_fail_on
from txnlib.jobs.progress import FORMATS, TEXT
from txnlib.pipeline.audit_request import INCREMENTAL, MODES, AuditRequest, check_number
from txnlib.readers.storage.local_files import shown
from txnlib.settings import NUMBERS

# ---- Options of the command line


#: `--summary -` prints JSON in place of the report.
STDOUT: Final = "-"


#: The program of the wheel that runs `audit`.
WHEELS: Final = "txnlib-audit"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, the jobs that take it, its help text, and the keyword arguments for argparse."""

    name: str
    jobs: frozenset[str]
    about: str
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The heading in `--help` under which it stands."""
        return next((heading for heading, names in GROUPS.items() if self.name in names), "Limits of the verdicts")


AUDIT: Final = "audit"
INGEST: Final = "ingest_dumps"
RECONSTRUCT: Final = "reconstruct_state"
REPORT: Final = "report_transactions"
_ALL: Final = frozenset({AUDIT, INGEST, RECONSTRUCT, REPORT})
_READS: Final = frozenset({AUDIT, INGEST})
_REPORTS: Final = frozenset({AUDIT, REPORT})


#: Headings of `--help`, in their order -> options. All others are settings that are numbers.
#: The numbers among the rare options can stand in the settings file, too.
GROUPS: Final = {
    "Input and output": ("--input", "--output", "--schema", "--conf", "--cluster", "--as-of", "--captured-at"),
    "Limits of the verdicts": (),
    "What to read": ("--mode", "--dry-run"),
    "Results": ("--report", "--metrics", "--summary", "--fail-on", "--acknowledged"),
    "Running": ("--engine", "--keep-days", "--quiet"),
    "Rare options": (
        "--transaction-max-timeout-ms",
        "--in-doubt-after",
        "--coordinator-partitions",
        "--follow-links",
        "--log-format",
        "--debug",
    ),
}

OPTIONS: Final = (
    Option(
        "--input",
        _READS,
        "Folder or file with copies of Kafka logs: local, s3://, gs://, abfss:// or hdfs://. Can be given several"
        " times",
        {"action": "append", "metavar": "PATH"},
    ),
    Option("--output", _ALL, "Folder of the Delta tables", {"metavar": "PATH"}),
    Option("--schema", _ALL, "Catalog schema of the Delta tables, in place of --output", {"metavar": "CATALOG.SCHEMA"}),
    Option("--conf", _READS, "Settings file (TOML)", {"metavar": "FILE"}),
    Option(
        "--cluster",
        _ALL,
        "Name of the cluster (default: from capture.json, else the name of the folder)",
        {"metavar": "NAME"},
    ),
    Option(
        "--as-of",
        _ALL,
        "Instant at which to judge: ISO-8601, epoch ms, or 'capture', the newest capture instant (default)",
        {"metavar": "TIME"},
    ),
    Option(
        "--captured-at",
        _READS,
        "When copying began, of copies whose instant no capture.json notes. Without it, each counts as taken at its"
        " newest record, and more transactions are UNKNOWN",
        {"metavar": "TIME"},
    ),
    *[Option(str(each.option), _READS, each.help, {"type": int, "metavar": each.metavar}) for each in NUMBERS.values()],
    Option(
        "--fail-on",
        _REPORTS,
        "Exit with code 3 if any of these was found: a verdict (hanging, stuck, late, suspect, unknown); any of these"
        " on a transaction that no audit saw before (new), or one of them (new-hanging, ...); a two-phase commit that"
        " is open for longer than --in-doubt-after (in-doubt); a critical finding (critical); a copy that is not"
        " complete (coverage)",
        {"metavar": "CONDITIONS"},
    ),
    Option(
        "--acknowledged",
        _REPORTS,
        "What is known, until when, by whom and why (TOML): it does not count for --fail-on, and moves down in the"
        " report",
        {"metavar": "FILE.toml"},
    ),
    Option("--report", _REPORTS, "Also write the report as an HTML page", {"metavar": "FILE.html"}),
    Option(
        "--metrics",
        _REPORTS,
        "Also write Prometheus gauges, for node_exporter's textfile collector",
        {"metavar": "FILE.prom"},
    ),
    Option(
        "--summary",
        _REPORTS,
        "Also write the report in numbers, as JSON; '-' prints it in place of the report",
        {"metavar": "FILE.json"},
    ),
    Option(
        "--engine",
        _ALL,
        "What carries out the queries. Default: spark with --master, SPARK_MASTER, SPARK_REMOTE or --schema,"
        " else embedded",
        {"choices": ENGINES},
    ),
    Option(
        "--mode",
        _READS,
        "Read only what no earlier audit of the cluster has read (incremental, default), or everything again (full)."
        " The tables are the same",
        {"choices": MODES, "default": INCREMENTAL},
    ),
    Option(
        "--follow-links",
        _READS,
        "Follow links that lead out of the input (default: list them in quarantine)",
        {"action": "store_true"},
    ),
    Option(
        "--keep-days",
        _REPORTS,
        "Delete audits of this cluster that are more than DAYS days older than this one (default: keep all)",
        {"type": int, "metavar": "DAYS"},
    ),
    Option("--quiet", _ALL, "Print no progress; errors are printed", {"action": "store_true"}),
    Option(
        "--log-format",
        _ALL,
        "Print progress and errors as text (default), or as lines of JSON with time, level and message",
        {"choices": FORMATS, "default": TEXT},
    ),
    Option(
        "--debug", _ALL, "Print stack traces of a failure (default: write them to a file)", {"action": "store_true"}
    ),
    Option("--dry-run", _READS, "Print what would be read, and judged as of when, and exit", {"action": "store_true"}),
)


class _JobParser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(job: str, about: str, argv: Sequence[str]) -> argparse.Namespace:
    """Parses the options of one job. Raises UsageError if they are invalid."""
    started = PurePath(sys.argv[0]).stem
    prog = WHEELS if started == WHEELS else f"./spark-submit.sh {job}"
    parser = _JobParser(prog=prog, usage=f"{prog} [options]", description=about, allow_abbrev=False)
    for heading in GROUPS:
        if own := [option for option in OPTIONS if job in option.jobs and option.group == heading]:
            group = parser.add_argument_group(heading)
            for option in own:
                group.add_argument(option.name, help=option.about, **option.how)
    options = parser.parse_args(argv)
    for name, value in vars(options).items():
        # `--input` is exempt: a file name may be any bytes.
        if name != "input" and isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise UsageError(f"--{name.replace('_', '-')} {shown(value)}: is not UTF-8")
    if job in _READS and not options.input:
        raise UsageError("--input is missing: name the folder with the copies of the logs")
    if not options.output and not options.schema and not getattr(options, "dry_run", False):
        raise UsageError("--output is missing: name the folder for the Delta tables (or --schema)")
    if options.output and "://" not in options.output and Path(options.output.removeprefix("file:")).is_file():
        raise UsageError(f"--output {shown(options.output)}: is a file; name a folder")
    if job in _REPORTS:
        options.fail_on = parse_fail_on(options.fail_on)
        options.acknowledged = read_acknowledgements(options.acknowledged)
        check_number("--keep-days ", options.keep_days, 1, MAX_INT32)
        for file in (options.report, options.metrics, None if options.summary == STDOUT else options.summary):
            if file is not None:
                check_whole_file(file)
    options.as_of_ms = None if options.as_of == "capture" else _instant(options.as_of, "--as-of")
    options.captured_at_ms = _instant(getattr(options, "captured_at", None), "--captured-at")
    return options


def _instant(given: str | None, option: str) -> int | None:
    return None if given is None else parse_instant(given, option)


def request_of(options: argparse.Namespace) -> AuditRequest:
    """The request of a command line. Raises UsageError for options that are mutually exclusive."""
    given = {field.name: getattr(options, field.name) for field in fields(AuditRequest) if hasattr(options, field.name)}
    if "input" in given:
        given["input"] = tuple(given["input"])
    if not given["output"] and not given["schema"]:
        given["output"] = "nowhere"  # a dry run writes nothing
    return AuditRequest(**given, settings={key: getattr(options, key, None) for key in NUMBERS})
