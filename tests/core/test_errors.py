"""The place, the fault and the remedy in an error's text."""

from __future__ import annotations

import pytest

from txnlib.errors import ConfigError, MissingTableError, TxnlibError, UnreadableInputError, UsageError

#: error -> what it says.
SAID = [
    (UsageError("--partition needs --topic"), "--partition needs --topic"),
    (ConfigError("prod.toml", "limits.late", "must be a number"), "prod.toml: limits.late: must be a number"),
    (ConfigError("prod.toml", "", "is no TOML"), "prod.toml: is no TOML"),
    (
        UnreadableInputError("/data", "nothing to read", "Name a capture."),
        "/data: nothing to read. Name a capture.",
    ),
    (
        MissingTableError("records", "ingest"),
        "table records is missing: run the job ingest first, with the same --output",
    ),
]


@pytest.mark.parametrize(("error", "text"), SAID)
def test_an_error_speaks_for_itself(error: TxnlibError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, TxnlibError)
