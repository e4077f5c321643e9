"""The place, the fault and the remedy in an error's text."""

from __future__ import annotations

import pickle
from importlib import metadata

import pytest

from txnlib.errors import (
    ConfigError,
    MissingExtraError,
    MissingTableError,
    TxnlibError,
    UnreadableInputError,
    UsageError,
)

#: error -> what it says in Python, and on the command line.
SAID = [
    (UsageError("--partition needs --topic"), "partition= needs topic=", "--partition needs --topic"),
    (UsageError("--as-of then: expected ISO-8601"), "as_of=then: expected ISO-8601", "--as-of then: expected ISO-8601"),
    (
        UsageError("--stuck-after (a huge number): no"),
        "stuck_after=(a huge number): no",
        "--stuck-after (a huge number): no",
    ),
    (
        UsageError("nothing is open", hint="txn-audit open --tables x"),
        "nothing is open",
        "nothing is open; txn-audit open --tables x",
    ),
    (UsageError("a--b: is /x/--y"), "a--b: is /x/--y", "a--b: is /x/--y"),
    (ConfigError("prod.toml", "limits.late", "must be a number"), *["prod.toml: limits.late: must be a number"] * 2),
    (ConfigError("prod.toml", "", "is no TOML"), *["prod.toml: is no TOML"] * 2),
    (
        UnreadableInputError("/data", "it is empty", "Check --input"),
        "/data: it is empty. Check capture=",
        "/data: it is empty. Check --input",
    ),
    (UnreadableInputError("/out", "none", "Give --tables"), "/out: none. Give output=", "/out: none. Give --tables"),
    (
        MissingTableError("records", "ingest"),
        "table records is missing: run the job ingest first, with the same output=",
        "table records is missing: run the job ingest first, with the same --output",
    ),
    (
        MissingTableError("records", "ingest", "/out"),
        "table records is missing in /out: run the job ingest first, with the same output=",
        "table records is missing in /out: run the job ingest first, with the same --output",
    ),
]


@pytest.mark.parametrize(("error", "in_python", "on_command_line"), SAID)
def test_an_error_speaks_of_what_its_caller_has(error: TxnlibError, in_python: str, on_command_line: str) -> None:
    assert (str(error), error.on_command_line()) == (in_python, on_command_line)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.on_command_line()) == (in_python, on_command_line)


@pytest.mark.parametrize(
    ("extra", "package", "installed", "says"),
    [
        ("local", "pysail", "pyspark", "in another environment, because this one has pyspark"),
        ("spark", "pyspark", "pyspark-client", "in another environment, because this one has pyspark-client"),
        ("local", "pyspark", "", "-m pip install 'txnlib[local]'. Where there is a Spark already, as on Databricks: "),
        ("sql", "DuckDB", "pyspark", "-m pip install 'txnlib[sql]'"),
    ],
)
def test_nobody_is_told_to_mix_both_packages_of_pyspark(monkeypatch, extra, package, installed, says):
    def version(name: str) -> str:
        if name != installed:
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    assert says in str(MissingExtraError("it", package, extra))
