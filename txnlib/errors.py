"""Which failures can the product raise? Only these; oddities in the data are findings, not errors."""

from __future__ import annotations


class TxnlibError(Exception):
    """Root of everything txnlib raises on purpose; the message says what to do."""


class UsageError(TxnlibError):
    """An option or a combination of options that cannot be used: exit code 2."""


class ConfigError(TxnlibError):
    """A settings file or capture.json that cannot be used: exit code 2."""

    def __init__(self, path: str, key: str, problem: str) -> None:
        super().__init__(path, key, problem)
        self.path, self.key, self.problem = path, key, problem

    def __str__(self) -> str:
        where = f"{self.path}: {self.key}" if self.key else self.path
        return f"{where}: {self.problem}"


class UnreadableInputError(TxnlibError):
    """No input that can be read at all: exit code 2."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = path, problem, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}. {self.remedy}"


class MissingTableError(TxnlibError):
    """A table that an earlier job should have written is not there."""

    def __init__(self, name: str, job: str) -> None:
        super().__init__(name, job)
        self.name, self.job = name, job

    def __str__(self) -> str:
        return f"table {self.name} is missing: run the job {self.job} first, with the same --output"


class BusyError(TxnlibError):
    """Another audit of the cluster is at work in the same tables: exit code 1."""

    def __init__(self, cluster: str, run_id: str, owner: str) -> None:
        super().__init__(cluster, run_id, owner)
        self.cluster, self.run_id, self.owner = cluster, run_id, owner

    def __str__(self) -> str:
        return (
            f"another audit of cluster {self.cluster} is at work in these tables: run {self.run_id} by {self.owner}. "
            "Wait for it; if you know that it died, add --take-over"
        )
