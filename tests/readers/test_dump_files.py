"""One damaged line in a dump of several files: it moves no batch, and costs none of another file in silence."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from tests.support.dumps import Batch, Record, marker, print_dump, rows
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.lines import UnreadableReason

Line = bytes
DIRECTORY: Final = "/var/lib/kafka/data"
FORMS: Final[dict[str, dict[str, bool]]] = {
    "shallow": {"deep": False},
    "deep": {},
    "contents": {"contents": True},
    "bare": {"skip_record_metadata": True},
}
LETTERS: Final = b"abXYZ0159 -_/:|]"


class File(NamedTuple):
    """A dumped segment: its folder, and the lines of its text."""

    folder: str
    lines: list[Line]


def files(chance: random.Random, form: str) -> list[File]:
    """A few partitions with up to two segments each. Many begin with the same batches, as partitions written together
    do."""
    made, common = [], log(chance, chance.randrange(1, 5))
    for partition in range(chance.randrange(2, 6)):
        for number in range(chance.randrange(1, 3)):
            start = 100 * number
            batches = (
                common[: chance.randrange(len(common) + 1)]
                if chance.random() < 0.5
                else log(chance, chance.randrange(5))
            )
            folder = f"{chance.choice(['orders', '__transaction_state'])}-{partition}"
            text = print_dump(*batches, path=f"{DIRECTORY}/{folder}/{start:020}.log", start=(start, 0), **FORMS[form])
            made.append(File(folder, io.BytesIO(text).readlines()))
    return made


def log(chance: random.Random, count: int) -> list[Batch]:
    record = Record(value=chance.choice([b"v", b"two\nlines", b"many\n\nlines\n"]))
    one = Batch((record,) * chance.randrange(1, 4), producer_id=chance.randrange(4000, 4005))
    return [marker("COMMIT", one.producer_id) if chance.random() < 0.3 else one for _ in range(count)]


def damaged(lines: list[Line], at: int, kind: str, chance: random.Random) -> bytes:
    line = lines[at]
    place = chance.randrange(len(line))
    if kind == "lost":
        line = b""
    elif kind == "cut":
        line = line[:place] + b"\n"
    elif line != b"\n":
        place = min(place, len(line) - 2)
        line = line[:place] + bytes([chance.choice(LETTERS)]) + line[place + 1 :]
    return b"".join([*lines[:at], line, *lines[at + 1 :]])


def batches_of(text: bytes) -> Counter[tuple[Any, ...]]:
    """The folder of each batch, and what identifies it there."""
    names = ("segment_base_offset", "base_offset", "last_offset", "position", "producer_id")
    return Counter(
        (f"{row['topic']}-{row['partition']}", *(row[name] for name in names)) for row in rows("record_batches", text)
    )


def cases(form: str, kind: str, count: int) -> Iterator[tuple[list[File], int, bytes]]:
    """The files of a dump, which of them is damaged, and the text with the damage."""
    for seed in range(count):
        chance = random.Random(f"{form} {kind} {seed}")
        dump = files(chance, form)
        owners = [index for index, file in enumerate(dump) for _line in file.lines]
        at = chance.randrange(len(owners))
        yield dump, owners[at], damaged([line for file in dump for line in file.lines], at, kind, chance)


@pytest.mark.parametrize("kind", ["lost", "garbled", "cut"])
@pytest.mark.parametrize("form", FORMS)
def test_one_damaged_line_costs_and_moves_no_batch_of_another_file(form: str, kind: str) -> None:
    for dump, owner, text in cases(form, kind, 80):
        found = batches_of(text)
        of_files = [batches_of(b"".join(file.lines)) for file in dump]
        others = sum((of_file for index, of_file in enumerate(of_files) if index != owner), Counter[tuple[Any, ...]]())
        segments = rows("segments", text)
        lowered = {
            f"{row['topic']}-{row['partition']}" for row in segments if row["unreadable"] or row["tail"] != "CLEAN"
        }
        is_said = bool(lowered)
        # Any line behind contents or header keys without a known end may be a part of them, and that is said.
        has_ended = form in ("deep", "contents") and any(row["tail"] in ("UNMEASURED", "TORN") for row in segments)
        assert not others - found or has_ended, (others - found, text.decode(errors="replace"))

        missing = of_files[owner] - found
        newest = max(of_files[owner], key=lambda batch: batch[2], default=None)
        # Of a batch that is lost at its end, a file shows nothing. A wrong digit changes the batch itself.
        is_other_line = dump[owner].lines[0] not in io.BytesIO(text).readlines()
        is_hidden = missing.keys() <= {newest} or (kind == "garbled" and (is_other_line or missing.total() == 1))
        assert is_said or is_hidden, (missing, text.decode(errors="replace"))

        # What is found beyond the truth is of the damaged file: with a wrong digit, or under the name that its line has
        # now.
        strange = found - others - of_files[owner]
        neighbours = {file.folder for index, file in enumerate(dump) if index != owner} - {dump[owner].folder}
        assert is_said or kind == "garbled" or not {batch[0] for batch in strange} & neighbours, (strange, text)
        is_kept = strange.total() <= (len(of_files[owner]) if is_other_line else 1)
        assert is_kept, (strange, text)


def test_files_after_a_lost_record_line_are_read_and_not_lowered() -> None:
    parts = [
        print_dump(*[Batch()] * 3, path=f"{DIRECTORY}/orders-{number}/{0:020}.log", contents=True)
        for number in range(4)
    ]
    text = parts[0].rpartition(b"| offset: ")[0] + b"".join(parts[1:])

    found = [(row["partition"], row["batches"], row["tail"], row["unreadable"]) for row in rows("segments", text)]

    assert [row[:3] for row in found] == [(0, 3, "TORN"), *[(number, 3, "CLEAN") for number in range(1, 4)]]
    assert [row[3] for row in found] == [[], [], [], []]


@pytest.mark.parametrize("end", [b"", b"\nrest"])
def test_a_file_in_a_payload_of_a_wrong_size_is_not_read(end: bytes) -> None:
    forged = print_dump(Batch(), marker("COMMIT"), path=f"{DIRECTORY}/payments-0/{0:020}.log").removesuffix(b"\n")
    record = Record(value=b"x\n" + forged + end)
    text = print_dump(Batch(), Batch((record,)), path=f"{DIRECTORY}/orders-0/{0:020}.log", contents=True)
    text = text.replace(b"valueSize: %d " % len(record.value or b""), b"valueSize: 9999 ")
    text += print_dump(Batch(), path=f"{DIRECTORY}/orders-1/{0:020}.log", contents=True)

    assert [row["topic"] for row in rows("record_batches", text)] == ["orders", "orders"]
    assert rows("segments", text)[0]["tail"] in ("UNMEASURED", "TORN")


@pytest.mark.parametrize("batches", [0, 1])
def test_a_lost_dumping_line_is_noticed_by_the_line_after_it(batches: int) -> None:
    """Otherwise, the batches of the next file would belong to an empty one, or to one that begins with the same
    batch."""
    first, second = ([marker("COMMIT")] * count for count in (batches, 3))
    text = print_dump(*first, deep=False) + print_dump(*second, deep=False).partition(b"\n")[2]

    assert [(row["topic"], row["batches"]) for row in rows("segments", text)] == [("orders", batches), (None, 3)]
    assert rows("segments", text)[1]["unreadable"][0]["reason"] == UnreadableReason.TOPIC_PARTITION_UNKNOWN


def test_a_starting_offset_other_than_the_name_lowers_its_file() -> None:
    text = print_dump(Batch()).replace(b"Log starting offset: 0", b"Log starting offset: 8")

    (row,) = rows("segments", text)
    assert [(bad["reason"], bad["sample"]) for bad in row["unreadable"]] == [("BROKEN_LINE", "Log starting offset: 8")]
    assert len(rows("record_batches", text)) == 1


def test_a_marker_without_metadata_hides_no_file_after_it() -> None:
    parts = [
        print_dump(Batch(), marker("COMMIT"), path=f"{DIRECTORY}/orders-{number}/{0:020}.log", **FORMS["bare"])
        for number in range(3)
    ]
    found = [(row["partition"], row["batches"], row["tail"]) for row in rows("segments", b"".join(parts))]
    assert found == [(number, 2, "CLEAN") for number in range(3)]


def test_a_text_of_nothing_but_first_lines_is_empty_only_where_another_file_follows() -> None:
    """The tool prints no more of a file of 0 bytes. A text that was cut after these lines looks the same."""
    empty, other = (
        print_dump(*batches, path=f"{DIRECTORY}/orders-{len(batches)}/{0:020}.log") for batches in ([], [Batch()])
    )
    lines = io.BytesIO(empty).readlines()

    for text in (empty, lines[0], other + empty):
        assert [row["tail"] for row in rows("segments", text)][-1] == "EMPTY_OR_CUT"
    for text in (empty + other, lines[0] + other, empty + f"Dumping {DIRECTORY}/orders-0/{0:020}.snapshot\n".encode()):
        assert next((row["tail"], row["batches"]) for row in rows("segments", text)) == ("CLEAN", 0)


def test_partitions_of_like_names_are_in_no_doubt() -> None:
    paths = [(0, 0), (0, 2), (1, 0), (1, 2), (2, 2), (3, 0)]
    text = b"".join(
        print_dump(Batch(), Batch(), path=f"{DIRECTORY}/orders-{partition}/{start:020}.log", start=(start, 0))
        for partition, start in paths
    )
    assert batches_of(text).total() == 2 * len(paths)
    assert not [row for row in rows("segments", text) if row["unreadable"]]


def test_empty_lines_are_skipped_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes of .gz may hold hundreds of millions. They mean nothing, so the same is read."""
    seen: list[int] = []
    real = DumpReader.read
    monkeypatch.setattr(
        DumpReader, "read", lambda self, position, line: (seen.append(position), real(self, position, line))[1]
    )
    parts = [print_dump(Batch(), Batch(), path=f"{DIRECTORY}/orders-{number}/{0:020}.log") for number in range(2)]
    empty, bad = b"\n" * 100_000, b"Dumping core\n"
    text = empty + parts[0] + empty + bad + parts[1] + empty

    found = rows("segments", text, chunk=1_000)

    assert len(seen) < 5_000
    assert [(row["partition"], row["batches"], row["tail"]) for row in found] == [(0, 2, "CLEAN"), (1, 2, "CLEAN")]
    assert [(bad["position"], bad["length"]) for bad in found[0]["unreadable"]] == [(text.index(bad), len(bad))]
