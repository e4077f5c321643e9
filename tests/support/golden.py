"""What goes into golden files: what commands print, and how screens differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import ndiff
from pathlib import Path

from tests.support.delta_tables import txn_audit
from txnlib.ask.own_command import program


def differences(base: str, cases: Mapping[str, str]) -> str:
    """A screen, and by name how others differ from it."""
    told = [base]
    for name, text in cases.items():
        told += ["", f"== {name}"]
        told += [line.rstrip() for line in ndiff(base.splitlines(), text.splitlines()) if line[:2] in ("+ ", "- ")]
    return "".join(f"{line}\n" for line in told)


def printed(tables: Path, commands: Sequence[str]) -> str:
    """What commands of txn-audit print of tables, in whatever folder these and the program are."""
    told = ""
    for command in commands:
        code, text, message = txn_audit(tables, *command.split())
        assert (code, message) == (0, ""), command
        told += f"$ txn-audit {command}\n{text}\n"
    return told.replace(program(), "txn-audit").replace(str(tables), "OUT")
