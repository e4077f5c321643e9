"""`txn-audit`: queries over the tables of an audit, without a JVM.

Exit codes: 0 answered; 1 failed; 2 bad usage, or no readable tables; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import Action, ArgumentError, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from txnlib.ask.command_output import FORMS, KAFKA, SCRIPT, CommandOutput
from txnlib.ask.commands import COMMANDS, GROUPS, Command, Reads
from txnlib.ask.grid import TABLE
from txnlib.ask.own_command import PROGRAM
from txnlib.ask.queries import StoredRun, transactions_of
from txnlib.core.display import encodable, printable
from txnlib.errors import TxnlibError, meant
from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.ask.delta_rows import Tables


def answer_of(command: str) -> Callable[..., CommandOutput]:
    """The function that answers a command. Its module is imported only now, to keep start-up fast."""
    module, _, function = COMMANDS[command].answer.partition(":")
    answer: Callable[..., CommandOutput] = getattr(import_module(f"txnlib.{module}"), function)
    return answer


def _handed(reads: Reads, options: Namespace) -> tuple[Any, ...]:
    if reads is Reads.NOTHING:
        return ()
    from txnlib.ask.delta_rows import default_root, open_run, open_tables  # takes 0.1 s, which other commands can skip

    if options.tables is None:
        options.tables = default_root()
    tables = open_tables(options.tables)
    return (tables,) if reads is Reads.TABLES else (open_run(tables, run_id=options.run, as_of=options.as_of),)


def _check_place(read: tuple[Any, ...], options: Namespace) -> None:
    """Raises UsageError where nothing is listed because no copy of the topic, or of its partition, was audited."""
    if getattr(options, "topic", None) is not None:
        from txnlib.ask.subject import check_captured  # only for this message

        check_captured(read[0], options.topic, getattr(options, "partition", None))


def _looked(read: tuple[Any, ...]) -> str:
    """Where an answer without rows was sought."""
    return "".join(f" in run {each.run_id} of {each.tables.root}" for each in read if isinstance(each, StoredRun))


def _odd_value(read: tuple[Any, ...]) -> str:
    """Which tables an answer had read when it failed: somebody may have changed a value in one of them."""
    names = sorted(name for each in read for name in (each.tables if isinstance(each, StoredRun) else each).opened)
    if not names:
        return ""
    return f" (read: {', '.join(names)}). If somebody changed these tables, run the audit again"


def main(argv: Sequence[str] | None = None) -> int:
    """Answers one command and returns the exit code. Errors go to stderr."""
    read: tuple[Any, ...] = ()
    try:
        asked = parser()
        options = asked.parse_args(argv)
        if options.command is None:
            asked.print_help()
            return 0
        read = _handed(COMMANDS[options.command].reads, options)
        answer = answer_of(options.command)(*read, options)
        if not answer.rows:
            _check_place(read, options)
            answer = replace(answer, empty=f"{answer.empty}{_looked(read)}")
        notes = [*(each.note for each in read if isinstance(each, StoredRun) and each.note), *answer.notes]
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = answer.text(options.format, width=width, is_wide=options.wide)
    except SystemExit as exited:  # argparse, after --help or bad usage
        return int(exited.code or 0)
    except TxnlibError as error:
        return _say(error.on_command_line(), error.exit_code)
    except KeyboardInterrupt as stopped:
        return _say(str(stopped) or "stopped", 130)  # as shells say of a process that SIGINT ended
    except Exception as error:  # last line of defence: report the failure and exit with 1
        return _say(f"failed: {type(error).__name__}: {error}{_odd_value(read)}", 1)
    for note in notes:
        _say(note, 0)
    _print(text)
    return answer.exit_code


def _print(text: str) -> None:
    try:
        sys.stdout.write(encodable(text, getattr(sys.stdout, "encoding", None)))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader stopped early, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {printable(text)}\n")
    return code


# ---- The command line


_ABOUT: Final = "Query the Delta tables of an audit. Needs no JVM. Only `capture` talks to a cluster."
EXIT_CODES: Final = "Exit codes: 0 answered; 1 failed; 2 bad usage, or no readable tables; 130 stopped by Ctrl-C."


class _CommandParser(ArgumentParser):
    """A parser that suggests the word that was probably meant."""

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            near = meant(str(value), map(str, action.choices or ()))
            if not near:
                raise
            raise ArgumentError(action, f"invalid choice: {value!r}{near}") from error

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n{self.format_usage()}")


class _WholeParser(_CommandParser):
    """The parser of all commands, whose help groups them."""

    def format_help(self) -> str:
        (commands,) = (action for action in self._actions if isinstance(action.choices, dict))
        listed = {each.dest: each for each in commands._choices_actions}  # type: ignore[attr-defined]
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        for heading, names in GROUPS.items():
            formatter.start_section(heading)
            formatter.add_arguments([listed[name] for name in names])
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def parser() -> ArgumentParser:
    """The parser of all commands. Every command that reads tables takes `--tables`, and most take `--run` and
    `--as-of`."""
    more = f"{PROGRAM} COMMAND --help describes a command, {PROGRAM} --version names this version. {EXIT_CODES}"
    whole = _WholeParser(prog=PROGRAM, description=_ABOUT, epilog=more, usage=f"{PROGRAM} COMMAND [options]")
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=_CommandParser, prog=PROGRAM)
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            description=f"{command.about}.",
            epilog=f"Example: {' '.join([PROGRAM, name, command.example]).rstrip()}\n\n{EXIT_CODES}",
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
            help=command.about,
        )
        added.set_defaults(format=TABLE, wide=False, run=None, as_of=None)
        for option, how in command.options.items():
            added.add_argument(option, **how)
        _add_shared(added, command)
    return whole


def _add_shared(added: ArgumentParser, command: Command) -> None:
    """The options of every command for which they mean something."""
    said = {
        KAFKA: "; kafka is exactly what kafka-transactions.sh prints",
        SCRIPT: "; sh is a script that checks before each step",
    }
    of_tables: dict[str, dict[str, Any]] = {
        "--tables": {
            "metavar": "PATH",
            "help": (
                "The --output of the audit, a folder or a URI (default: $TXN_AUDIT_TABLES, else out, or the only folder"
                " in it)"
            ),
        },
        "--run": {"metavar": "RUN_ID", "help": "Run to read (default: the newest)"},
        "--as-of": {"metavar": "INSTANT", "help": "Read the run of this instant: ISO-8601 or epoch ms"},
    }
    of_output: dict[str, dict[str, Any]] = {
        "--format": {
            "choices": (*FORMS, *command.forms),
            "default": TABLE,
            "help": f"Output format{''.join(said[form] for form in command.forms)} (default: table)",
        },
        "--wide": {"action": "store_true", "help": "Print all columns of a table, however wide the terminal is"},
    }
    shared = added.add_argument_group("tables and output")
    for option, how in {**(of_tables if command.reads is not Reads.NOTHING else {}), **of_output}.items():
        if option not in command.without:
            shared.add_argument(option, **how)


# ---- Answers of a few lines


_RUN: Final = ("run_id", "status", "as_of", "verdicts", "cluster", "started_at", "finished_at", "version", "input")


def answer_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    from txnlib.ask.delta_rows import chosen_runs  # as above

    rows = chosen_runs(tables, run_id=options.run, as_of=options.as_of)
    for row in rows:
        counts = transactions_of(json.loads(row["counts"] or "{}"))
        row["verdicts"] = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return CommandOutput(_RUN, rows, shown=_RUN[:4])


def answer_completion(options: Namespace) -> CommandOutput:
    """The script that completes commands and options in one shell. `--format` does not apply: it is no table."""
    import shtab  # only for this answer

    whole = parser()
    (commands,) = (action.choices for action in whole._actions if isinstance(action.choices, dict))
    for action in (action for command in commands.values() for action in command._actions if action.dest == "tables"):
        action.complete = shtab.DIRECTORY
    script = shtab.complete(whole, shell=options.shell)
    return CommandOutput(
        ("shell", "script"), [{"shell": options.shell, "script": script}], page=lambda _: f"{script.rstrip()}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
