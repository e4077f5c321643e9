"""Laws of printed commands: every shell passes on any name as one argument."""

from __future__ import annotations

import shutil
import subprocess
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txnlib.core import kafka_commands
from txnlib.core.kafka_commands import option, refusal, word
from txnlib.core.verdicts.plan_step import OpenTransaction, plan

ORDINARY = ("payments", "pay-1", "a.b_c-2")
NASTY = (
    *(
        "",
        " ",
        "it's",
        'say "x"',
        "$HOME",
        "`id`",
        "$(id)",
        "a;b",
        "a\\b",
        "\\n",
        "!!",
        "~",
        "*",
        "#x",
        "-",
        "--",
        "--help",
    ),
    *(
        "-t=x",
        "a\nb",
        "a\n\r",
        "-\x01",
        "%d\t\\0",
        "a\tb",
        "\x1b[2J",
        "\x7f",
        "a'\x01'b",
        "\\\x02",
        "\u202egnp",
        "\u2066x\u2069",
    ),
    *("a\u200eb", "a\u2028b", "\xa0", "ключ", "鍵", "🙂\u200d🙂", "\x01f", "\x1b0", "=x", "@file", "a=b"),
)
#: Any text that a command line can carry.
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12).filter(
    lambda t: refusal(t) is None
)
#: Shells that people paste into, of those that are here. `sh` is everywhere.
SHELLS = tuple(name for name in ("sh", "bash", "dash", "zsh") if shutil.which(name))
PLACE = {
    "topic": "orders",
    "partition": 0,
    "producer_id": 7,
    "producer_epoch": 0,
    "coordinator_epoch": 0,
    "start_offset": 5,
}
HELD = {"verdict": "LATE", "reason": "OVERDUE", "safe_to_abort": False, "coordinator_state": "Ongoing"}


def arguments(lines: list[str], shell: str = "bash") -> list[list[bytes]]:
    """What a shell makes of each line's words, in a locale that knows no UTF-8."""
    script = "told() { printf '%s\\0' $# \"$@\"; }\n" + "".join(f"told {line}\n" for line in lines)
    environment = {"LC_ALL": "C", "BOOTSTRAP": "host:9092"}
    with TemporaryDirectory() as folder:  # a word that is not quoted may redirect into a file
        told = subprocess.run([shell, "-c", script], capture_output=True, check=True, env=environment, cwd=folder)
    words = iter(told.stdout.split(b"\0")[:-1])
    return [[next(words) for _ in range(int(count))] for count in words]


@settings(max_examples=20, deadline=None)
@given(st.lists(TEXTS, min_size=20, max_size=20))
def test_any_text_arrives_as_it_is(texts):
    texts = [*NASTY, *ORDINARY, *texts]
    for shell in SHELLS:
        assert arguments([word(text) for text in texts], shell) == [[text.encode()] for text in texts], shell


@settings(max_examples=10, deadline=None)
@given(st.lists(TEXTS, min_size=20, max_size=20))
def test_a_command_shows_all_that_it_holds(texts):
    for text in [*NASTY, *texts]:
        assert word(text).isprintable(), "nothing in it is spelt out again, turned around, or on a line of its own"


def test_an_ordinary_name_stands_plain():
    assert [option("--topic", name) for name in ORDINARY] == [f"--topic {name}" for name in ORDINARY]


COMMANDS = {
    "--topic": lambda name: (
        kafka_commands.abort(name, 3, 5),
        kafka_commands.abort_on_old_brokers(name, 3, 7, 0, None),
        kafka_commands.describe_producers(name, 3),
        kafka_commands.find_hanging(name, 3),
    ),
    "--transactional-id": lambda name: (kafka_commands.describe(name),),
    "--transactionalId": lambda name: (kafka_commands.force_terminate(name),),
}


@pytest.mark.parametrize("named", COMMANDS)
def test_each_command_names_what_it_is_about(named):
    for name in (*NASTY, *ORDINARY):
        for words in arguments(list(COMMANDS[named](name))):
            assert words[:3] == [b"kafka-transactions.sh", b"--bootstrap-server", b"host:9092"]
            # As argparse4j reads it: what looks like an option must be part of one.
            is_joined = f"{named}={name}".encode() in words
            assert is_joined is name.startswith("-")
            assert is_joined or words[words.index(named.encode()) + 1] == name.encode()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a\n"])
def test_what_no_command_line_can_carry_is_refused(name):
    assert refusal(name) is not None
    with pytest.raises(ValueError, match="it holds"):
        word(name)
    told = plan(OpenTransaction(**PLACE, **HELD, transactional_id=name))
    assert told is not None
    assert (told.command, told.before, told.after) == (None, (), ())
    assert "no command line can carry its transactional id" in told.notes[-1]


def test_an_abort_names_the_partition_and_says_what_cannot_be_looked_up():
    hanging = {"verdict": "HANGING", "reason": "WRITTEN_AFTER_MARKER", "safe_to_abort": True, "abort_command": "abort"}
    told = plan(OpenTransaction(**PLACE, **hanging, transactional_id="a\0b"))
    assert told is not None
    assert told.command == "abort"
    assert not [step for step in told.before if "transactional-id" in step.command]
    assert [note for note in told.notes if "no command line can carry its transactional id" in note]
    assert plan(OpenTransaction(**{**PLACE, "topic": "a\0b"}, **hanging, transactional_id="a")).command is None
