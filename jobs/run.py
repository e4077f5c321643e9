"""A job from command line to exit code."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime

from jobs import traces
from txnlib.config import Settings
from txnlib.errors import BusyError, StepError, TxnlibError
from txnlib.readers.capture import Capture, FileKind
from txnlib.report.failure import failure_of, texts_of
from txnlib.stages import run as stages
from txnlib.stages.asked import Asked
from txnlib.stages.run import Run


def say(text: str) -> None:
    """A line of progress, to stderr: stdout is the report's. In one write, because several steps speak at a time.

    On a terminal it takes the place of Spark's progress bar, which is drawn anew below.
    """
    sys.stderr.write(f"\r\x1b[K{text}\n" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()


def main(job: Callable[[Sequence[str]], int], argv: Sequence[str], *, is_process: bool = False) -> int:
    """Runs a job's main and turns what it raises into an exit code: 2 for what the caller can mend, 1 for failure.

    The last line is ours. `is_process`: the process ends with the job, and Spark before that line.
    """
    if traces.is_debug(argv):
        traces.ask_for_whole_log()
    try:
        return job(argv)
    except SystemExit as asked:  # argparse after --help
        return int(asked.code or 0)
    except Exception as error:  # the last line of defence: a failed audit must say so
        code, text = failure(error)
        if is_process:
            traces.end_spark()
        say(f"txnlib: {text}{_traces_of(error, argv)}")
        return code


def failure(error: Exception) -> tuple[int, str]:
    """The exit code of what a job raised, and what is said about it, in one line."""
    if isinstance(error, StepError):
        return 1, f"the audit failed {error}"
    if isinstance(error, TxnlibError):
        return (1 if isinstance(error, BusyError) else 2), str(error)
    found = failure_of(texts_of(error))
    return 1, f"the audit failed: {found.says}. {found.cause.remedy}"


def _traces_of(error: Exception, argv: Sequence[str]) -> str:
    """Puts the traces of a failure into a file, and says which; onto stderr, if that is asked for or nothing can be written.

    What the caller can mend needs none.
    """
    if isinstance(error, TxnlibError) and not isinstance(error, StepError):
        return ""
    file = None if traces.is_debug(argv) else traces.keep(error, argv)
    if file is None:
        say(traces.text_of(error).rstrip())
        return ""
    return f". Traces: {file}"


def asked_by(options: Namespace) -> Asked:
    """What a command line asks. Raises UsageError for what excludes each other."""
    given = {field.name: getattr(options, field.name) for field in fields(Asked) if hasattr(options, field.name)}
    if "input" in given:
        given["input"] = tuple(given["input"])
    if not given["output"] and not given["schema"]:
        given["output"] = "nowhere"  # a dry run writes nothing
    return Asked(**given)


def open_run(options: Namespace) -> Run:
    """A run over `--input`; what is wrong is raised before anything is written."""
    return stages.open_run(asked_by(options), say)


def reopen_run(options: Namespace) -> Run:
    """The run that an earlier job began: the newest in `audit_runs`, or the one of --cluster and --as-of."""
    run = stages.reopen_run(asked_by(options), say)
    stages.tune_again(run)
    return run


def plan_text(run_inputs: Sequence[str], capture: Capture, settings: Settings) -> str:
    """What an audit would read, for --dry-run."""
    counts = {kind: len(capture.of_kind(kind)) for kind in FileKind}
    files = ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count)
    instant = datetime.fromtimestamp(settings.as_of_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return (
        f"cluster {settings.cluster}, as of {instant} ({settings.as_of_basis})\n"
        f"{len(capture.files)} files, {capture.size} bytes: {files}\n"
        f"from {', '.join(run_inputs)}"
    )
