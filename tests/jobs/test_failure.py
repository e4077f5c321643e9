"""The cause of a failure, from recorded texts of Spark and Delta."""

from __future__ import annotations

import json

import pytest

from txnlib.pipeline.failure import CAUSES, LONGEST, UNKNOWN, failure_of, texts_of

TOLD = {
    "disk full": ("no space is left on the disk", "java.io.IOException: No space left on device"),
    "file in place of a table": ("there is a file where a folder should be", "ParentNotDirectoryException"),
    "file in place of the output": ("there is a file where a folder should be", "ParentNotDirectoryException"),
    "file in place of the log": ("there is a file where a folder should be", "ParentNotDirectoryException"),
    "proc": (
        "the folder of a table cannot be created",
        "Cannot create file:/proc/none/aborted_transactions/_delta_log",
    ),
    "worker dies": ("Spark lost a process", "Python worker exited unexpectedly"),
    "worker memory": ("out of memory", "MemoryError"),
    "jvm heap": ("out of memory", "java.lang.OutOfMemoryError: Java heap space"),
    "broadcast timeout": ("probably out of memory", "java.util.concurrent.TimeoutException"),
    "jvm gone": ("Spark lost a process", "Py4JError"),
    "file vanished in worker": (
        "a file vanished",
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/",
    ),
    "data file vanished": ("a file vanished", "java.io.FileNotFoundException: File file:/out/"),
    "odd": ("", "ValueError: odd value"),
    "column": ("", "AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
}


@pytest.fixture(scope="module")
def recorded(repository):
    return json.loads((repository / "tests" / "support" / "failure_texts.json").read_text())


def test_every_recorded_failure_is_told(recorded):
    assert recorded.keys() == TOLD.keys()


@pytest.mark.parametrize("name", TOLD)
def test_a_failure_is_told_by_its_cause_in_one_line(recorded, name):
    words, line = TOLD[name]
    found = failure_of(recorded[name])
    assert found.cause.says.startswith(words)
    assert bool(found.cause.says) == bool(words)
    assert line in found.line
    assert "\n" not in found.says


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("java.io.IOException: Disk quota exceeded", "no space is left"),
        ("OSError: [Errno 28] No space left on device: '/out'", "no space is left"),
        ("java.io.FileNotFoundException: /out/part-0.parquet (Permission denied)", "permission denied"),
        ("java.io.FileNotFoundException: /out/part-0.parquet (Read-only file system)", "permission denied"),
        ("PermissionError: [Errno 13] Permission denied: '/copies/orders-0'", "permission denied"),
        ("java.nio.file.AccessDeniedException: s3a://b/out: getFileStatus", "permission denied"),
        (
            (
                "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with"
                " code 137"
            ),
            "Spark lost",
        ),
        (
            "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] Files were added",
            "another program wrote",
        ),
        ("txnlib.errors.UnreadableInputError: /copies/a.log: is gone. Copy it again", "a file vanished"),
        ("java.util.concurrent.TimeoutException: Futures timed out after [300 seconds]", "probably out of memory"),
        ("org.apache.spark.rpc.RpcTimeoutException: Cannot receive any reply in 120 seconds", "probably out of memory"),
        (
            "SparkRuntimeException: Resources exhausted: Failed to allocate additional 24.6 MB for ExternalSorter[0]",
            "the embedded engine needs more memory",
        ),
        (
            "RuntimeError: Not enough memory to continue external sort. Consider increasing the memory limit",
            "the embedded engine needs more memory",
        ),
        ("java.net.SocketTimeoutException: connect timed out", ""),
        ("java.lang.IllegalStateException: odd", ""),
    ],
)
def test_what_was_not_recorded_is_told_by_its_words(line, words):
    wrapped = (
        "An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat"
        " a.B.c(B.scala:1)"
    )
    found = failure_of([f"{wrapped}\nCaused by: {line}"])
    assert found.cause.says.startswith(words)
    assert bool(found.cause.says) == bool(words)
    assert found.line == line


def test_the_first_cause_that_applies_is_told_wherever_it_stands():
    found = failure_of(["FileNotFoundException: gone", "java.io.IOException: No space left on device"])
    assert (found.cause, found.line) == (CAUSES[0], "java.io.IOException: No space left on device")


def test_a_folder_that_no_file_system_makes_is_no_file_that_vanished():
    """As of --output below /proc."""
    found = failure_of(['Error: Os { code: 2, kind: NotFound, message: "No such file or directory" }'])
    assert found.cause.says == "the folder of a table cannot be created"


def test_a_line_of_a_stack_tells_nothing_and_long_lines_are_cut():
    found = failure_of(["ValueError: no\n\tat x.OutOfMemoryError.y(Z.java)\n" + "  File /No such file or directory"])
    assert (found.cause, found.says) == (UNKNOWN, "ValueError: no")
    assert len(failure_of([f"ValueError: {'x' * 999}"]).line) == LONGEST + 1
    assert failure_of([]).says == "unknown"


def test_an_exception_is_told_with_what_it_was_raised_from():
    error = RuntimeError("no luck")
    error.__cause__ = OSError(28, "No space left on device")
    assert texts_of(error) == ["RuntimeError: no luck", "OSError: [Errno 28] No space left on device"]


def test_what_delta_rs_says_in_several_lines_is_one():
    arrow = "\x1b[31m↳\x1b[0m"
    said = (
        f"Generic LocalFileSystem error\n          {arrow} Unable to walk dir\n           {arrow}"
        " Not a directory (os error 20)"
    )
    one_line = "OSError: Generic LocalFileSystem error: Unable to walk dir: Not a directory (os error 20)"
    assert texts_of(OSError(said)) == [one_line]
    assert failure_of([one_line]).cause.says == "there is a file where a folder should be"
