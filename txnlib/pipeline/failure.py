"""The cause of a failure in plain words. It is derived from the texts of the exceptions.

Spark wraps an exception in others, each with its stack trace. Of these thousands of lines, only those are read that
name an exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A kind of failure: its name, its remedy, and the pattern that detects it in the lines that name exceptions."""

    says: str
    remedy: str
    pattern: str


AGAIN: Final = "run the same command again"
MORE_MEMORY: Final = f"Give it more (Spark: --driver-memory after --; on a cluster, --executor-memory), then {AGAIN}"

#: The first match applies. Causes are listed before their consequences: a full disk makes files vanish, a lost executor
#: breaks connections.
CAUSES: Final = (
    FailureCause(
        "no space is left on the disk",
        f"Free space for the tables and for temporary files (of Spark: spark.local.dir), then {AGAIN}",
        r"No space left on device|Disk quota exceeded|There is not enough space on the disk|DiskOutOfSpaceException"
        r"|\[Errno (28|122)\]",
    ),
    FailureCause(
        "the embedded engine needs more memory than is free",
        f"Run it on Spark, which needs less at a time: --engine spark. Or end other programs, then {AGAIN}",
        r"Resources exhausted|Failed to allocate additional|Not enough memory to continue external sort",
    ),
    FailureCause(
        "out of memory",
        MORE_MEMORY,
        r"OutOfMemory(Error|Exception)?\b|Java heap space|GC overhead limit|Cannot allocate"
        r" memory|UNABLE_TO_ACQUIRE_MEMORY"
        r"|MemoryError|malloc of size|\[Errno 12\]",
    ),
    FailureCause(
        "permission denied",
        f"Give this user permission to write the tables and to read the copies, then {AGAIN}",
        r"Permission denied|Access(Control|Denied)Exception|\bAccessDenied\b|Read-only file system|Operation not"
        r" permitted"
        r"|\[Errno (1|13|30)\]",
    ),
    FailureCause(
        "Spark lost a process: an executor, a Python worker or its JVM",
        f"Check whether the system killed it for lack of memory (dmesg), then {AGAIN}",
        r"ExecutorLostFailure|Executor heartbeat timed out|Lost executor|Python worker exited"
        r" unexpectedly|Py4JNetworkError"
        r"|Py4JError: An error occurred while calling \S+$"
        r"|Answer from Java side is empty|ConnectionRefusedError|MetadataFetchFailedException|FetchFailedException",
    ),
    FailureCause(
        "the embedded engine ended or refused a query",
        f"Run it on Spark: --engine spark. If it was killed for lack of memory (dmesg), {AGAIN}",
        r"StatusCode\.UNAVAILABLE|SparkConnectGrpcException|BrokenProcessPool",
    ),
    FailureCause(
        "another program wrote to the table at the same time",
        f"Make sure that only one audit of a cluster writes to it, then {AGAIN}",
        r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|Concurrent(Append|Delete\w*|Write|Modification)Exception"
        r"|CommitFailedError",
    ),
    FailureCause(
        "there is a file where a folder should be",
        f"Remove it, or name another --output, then {AGAIN}",
        r"(FileAlreadyExists|ParentNotDirectory)Exception|Not a directory|NotADirectoryError|exists and is not a"
        r" directory"
        r"|Parent path is not a directory|\[Errno 20\]",
    ),
    FailureCause(
        "the folder of a table cannot be created",
        f"Make sure that this user can write to --output, then {AGAIN}",
        r"DELTA_CANNOT_CREATE_LOG_PATH|Mkdirs failed to create|^Error: Os \{ code: 2, kind: NotFound",
    ),
    FailureCause(
        "a file vanished or cannot be read",
        f"Make sure that nothing moves or deletes files while an audit runs, then {AGAIN}",
        r"FileNotFound(Exception|Error)|NoSuchFile(Exception)?\b|No such file or"
        r" directory|FILE_NOT_EXIST|PATH_NOT_FOUND|NoSuchKey"
        r"|FAILED_READ_FILE|UnreadableInputError|Input/output error|Stale file handle|\[Errno (2|5|116)\]",
    ),
    # The JVM collects a heap that is nearly full again and again. A broadcast then ends after minutes, without
    # OutOfMemoryError.
    FailureCause(
        "probably out of memory: Spark waited in vain for its own work",
        MORE_MEMORY,
        r"concurrent\.TimeoutException|RpcTimeoutException|Could not execute broadcast|Futures timed out",
    ),
)
UNKNOWN: Final = FailureCause("", f"See the traces; once the cause is fixed, {AGAIN}", "")

#: A line of a Java or Python trace that names an exception.
_NAMED: Final = re.compile(r"(?:Caused by: |: )?(?P<said>(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Failure|Interrupt)\b.*)")
#: How Java and Python begin the lines of a stack trace, and lines after a trace that name no exception.
_STACK: Final = re.compile(r"\s|\.\.\. |Traceback |Driver stacktrace|JVM stacktrace")
#: How delta-rs begins each cause: on a line of its own, with an arrow in red.
_CAUSE: Final = re.compile(r"\n\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)? *")
#: Most characters to show of one line.
LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """A kind of failure, and the line that shows it: class and message of an exception."""

    cause: FailureCause
    line: str

    @property
    def says(self) -> str:
        """The cause in one line: no space is left on the disk (java.io.IOException: No space left on device)."""
        return f"{self.cause.says} ({self.line})" if self.cause.says else self.line


def failure_of(texts: Sequence[str]) -> Failure:
    """Why a job failed, from the texts of its exceptions: the raised one first, then its causes.

    If no known cause matches, the innermost exception is reported.
    """
    lines = [line for text in texts for line in text.splitlines() if line and not _STACK.match(line)]
    for cause in CAUSES:
        found = [line for line in lines if re.search(cause.pattern, line)]
        if found:
            return Failure(cause, _short(found[-1]))
    named = [line for line in lines if _NAMED.match(line)]
    return Failure(UNKNOWN, _short((named or lines or ["unknown"])[-1]))


def texts_of(error: BaseException) -> list[str]:
    """The texts of an exception and of its causes, each with its class. What delta-rs says is one line."""
    texts: list[str] = []
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        texts.append(_CAUSE.sub(": ", f"{type(each).__name__}: {each}"))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return texts


def _short(line: str) -> str:
    match = _NAMED.match(line)
    said = (match["said"] if match else line).strip()
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
