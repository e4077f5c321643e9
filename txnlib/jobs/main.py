"""A job from command line to exit code."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from txnlib.errors import ExitCode, StepError, TxnlibError
from txnlib.jobs import traces
from txnlib.jobs.options import request_of
from txnlib.jobs.progress import LINES, set_up
from txnlib.pipeline import run as pipeline_run
from txnlib.pipeline.failure import failure_of, texts_of
from txnlib.pipeline.run import Run
from txnlib.readers.capture import FileKind


def say(text: str) -> None:
    """Writes a line of progress to stderr."""
    LINES.progress(text)


def main(job: Callable[[Sequence[str]], int], argv: Sequence[str], *, is_process: bool = False) -> int:
    """Runs a job and turns its exceptions into exit codes (`errors.ExitCode`).

    The last line of stderr is the job's own. `is_process`: the process ends with the job, so Spark is stopped before
    that line.
    """
    set_up(argv)
    if traces.is_debug(argv):
        os.environ.setdefault(*traces.WHOLE_LOG)
    try:
        return job(argv)
    except SystemExit as asked:  # argparse after --help
        return int(asked.code or 0)
    except Exception as error:  # last line of defence: report the failure
        code, text = failure(error)
        if is_process:
            traces.end_spark()
        LINES.error(f"txnlib: {text}{_traces_of(error, argv)}")
        return code


def start(job: Callable[[Sequence[str]], int]) -> None:
    """Runs a job as a program. Raises SystemExit only if the exit code is not 0, as Databricks requires."""
    if code := main(job, sys.argv[1:], is_process=True):
        sys.exit(code)


def failure(error: Exception) -> tuple[ExitCode, str]:
    """The exit code for an exception of a job, and its message, in one line."""
    if isinstance(error, StepError):
        return error.exit_code, f"the audit failed {error.on_command_line()}"
    if isinstance(error, TxnlibError):
        return error.exit_code, error.on_command_line()
    found = failure_of(texts_of(error))
    return ExitCode.FAILED, f"the audit failed: {found.says}. {found.cause.remedy}"


def _traces_of(error: Exception, argv: Sequence[str]) -> str:
    """Writes the traces of a failure to a file and names it; or prints them to stderr with --debug, or if no file can
    be written.

    Errors that the caller can fix need no traces.
    """
    if isinstance(error, TxnlibError) and not isinstance(error, StepError):
        return ""
    file = None if traces.is_debug(argv) else traces.keep(error, argv)
    if file is None:
        LINES.error(traces.text_of(error).rstrip())
        return ""
    return f". Traces: {file}"


def reopen_run(options: Namespace) -> Run:
    """The run that an earlier job started: the newest in `audit_runs`, or the one of --cluster and --as-of."""
    return pipeline_run.reopen_run(request_of(options), say)


def plan_text(run: Run) -> str:
    """What an audit would read, for --dry-run."""
    capture, settings = run.capture, run.settings
    assert capture is not None
    counts = {kind: len(capture.of_kind(kind)) for kind in FileKind}
    files = ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count)
    instant = datetime.fromtimestamp(settings.as_of_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return (
        f"cluster {settings.cluster}, as of {instant} ({settings.as_of_basis})\n"
        f"{len(capture.files)} files, {capture.size} bytes: {files}\n"
        f"from {', '.join(run.inputs)}"
    )
