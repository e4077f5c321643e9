"""Files that no reader knows: what each looks like, and what to do with it.

A reason names what a file is by its name and first bytes. A text of which these show nothing is looked through as a
whole: without a word of Kafka's tools it has nothing that an audit needs.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from txnlib.core.coverage.unread import NOTHING_LOST
from txnlib.core.kafka.constants import MAX_INT32
from txnlib.readers.storage import files
from txnlib.readers.storage.local_files import MAY_NOT, reason_of
from txnlib.readers.storage.packed_text import COMPRESSED, READ_ERRORS, can_be_unpacked, open_text

#: Most files to name in a message, or one by one on stderr.
MOST_NAMED: Final = 10
#: Number of bytes that show what a file is.
_HEAD_BYTES: Final = 65_536
#: Words of Kafka's tools that no other text has.
_WORDS: Final = re.compile(
    rb'baseOffset|isTransactional|endTxnMarker|TransactionMetadata\(|"transactionalId"|\| offset: ?\d|Dumping \S+\.log'
)
_LONGEST_WORD: Final = 512
ARCHIVE: Final = "ARCHIVE: unpack it"
LET_IT: Final = "Let the user of the audit read it, or audit as its owner"
#: Offsets and positions in a segment are int32 in its indexes.
TOO_LARGE: Final = f"TOO_LARGE: a segment has at most {MAX_INT32} bytes"
#: Problem of a segment that has indexes and is not there itself.
MISSING_SEGMENT: Final = "MISSING_SEGMENT: its index is here, and it is not: copy it, too"
_PACKED: Final = "PACKED: unpack it"
#: Reason of a file of a partition in a folder without its name.
NO_PARTITION_FOLDER: Final = (
    "NO_PARTITION_FOLDER: the name of its folder says whose it is: copy it into a folder <topic>-<partition>"
)
UTF_16: Final = "UTF_16: text of Kafka's tools as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8"
_OF_PARTITION: Final = re.compile(r"[0-9]{20}\.(?:log|snapshot|txnindex)(?:\.\w+)?")
_PACKED_OF_PARTITION: Final = re.compile(r"[0-9]{20}\.log\.(?:bz2|xz|zst|lz4|zip|7z)")
_REDPANDA: Final = re.compile(r"/[0-9]+_[0-9]+/[0-9]+-[0-9]+-v[0-9]+\.(?:log|base_index)\Z")
#: Text -> what it is, and what to do.
_TEXTS: Final = (
    (
        re.compile(rb'"tstype"\s*:|"topic"\s*:.{1,300}"offset"\s*:.{1,300}"payload"\s*:', re.DOTALL),
        "messages of kcat, which decodes no records of coordinators and shows no batches: print the partitions with"
        " kafka-dump-log.sh, or __transaction_state with kafka-console-consumer.sh --formatter",
    ),
    (
        re.compile(rb'\\?"transaction_id\\?"|\\?"transaction_status\\?"'),
        "messages that a web UI exported, in its own form: print __transaction_state with kafka-console-consumer.sh"
        " --formatter, or kafka-dump-log.sh",
    ),
    (
        _WORDS,
        "text with words of Kafka's tools, and none of their lines as they print them: hand over what the tool printed,"
        " as plain text, a line for a line",
    ),
)


class _Form(NamedTuple):
    """A form of files by its first bytes, from a position on. `reason`: `{}` is the name."""

    at: int
    begins: bytes
    reason: str


_FORMS: Final = (
    _Form(0, b"%PDF", "OTHER_FORMAT: a PDF: save its text as plain text"),
    _Form(0, b"\xd0\xcf\x11\xe0", "OTHER_FORMAT: a document of Office: save it as plain text"),
    _Form(0, b"PK\x03\x04", ARCHIVE),
    _Form(0, b"7z\xbc\xaf\x27\x1c", ARCHIVE),
    _Form(0, b"Rar!", ARCHIVE),
    _Form(257, b"ustar", ARCHIVE),
    _Form(0, b"\x1f\x8b", "PACKED: it is packed by gzip: unpack it, or call it {}.gz"),
    _Form(0, b"\x28\xb5\x2f\xfd", "PACKED: it is packed by zstd: unpack it, or call it {}.zst"),
    _Form(0, b"BZh", "PACKED: it is packed by bzip2: unpack it, or call it {}.bz2"),
    _Form(0, b"\xfd7zXZ\0", "PACKED: it is packed by xz: unpack it, or call it {}.xz"),
    _Form(0, b"\x04\x22\x4d\x18", "PACKED: it is packed by lz4: unpack it"),
)
_DOCUMENTS: Final = (".docx", ".odt", ".xlsx", ".ods", ".pptx")


def what_it_looks_like(path: str, size: int) -> str:
    """Why a file that no reader knows is not read, and what to do. Empty if its beginning does not show that, or if it
    cannot be opened: then the table readers report it."""
    try:
        return _looks_like(path, size)
    except READ_ERRORS:
        return ""


def _looks_like(path: str, size: int) -> str:
    name = path.rpartition("/")[2]
    if _REDPANDA.search(path):
        return "OTHER_FORMAT: of Redpanda, whose files are not those of Kafka: audit copies of Kafka's logs"
    if _PACKED_OF_PARTITION.fullmatch(name):
        return _PACKED
    if _OF_PARTITION.fullmatch(name):
        return NO_PARTITION_FOLDER
    if name.lower().endswith(_DOCUMENTS):
        return "OTHER_FORMAT: a document: save its text as plain text"
    if not size:
        return ""
    head = files.read_range(path, 0, _HEAD_BYTES)
    if path.endswith(COMPRESSED):
        if not can_be_unpacked(path):
            return "CANNOT_UNPACK: cut or damaged from its first byte on: copy it again"
    else:
        for form in _FORMS:
            if head.startswith(form.begins, form.at):
                return form.reason.format(name)
    with open_text(path, chunk=_HEAD_BYTES) as text:
        return _of_text(next(iter(text), b"")[:_HEAD_BYTES])


def _of_text(head: bytes) -> str:
    if _is_utf_16(head):
        is_seen = len(head) < _HEAD_BYTES and not any(known.search(head.replace(b"\0", b"")) for known, _ in _TEXTS)
        return "" if is_seen else UTF_16
    if head[257:262] == b"ustar":
        return ARCHIVE
    if b"\0" in head:
        return NO_PARTITION_FOLDER if _begins_like_segment(head) else _UNKNOWN
    return next((f"OTHER_FORMAT: {words}" for known, words in _TEXTS if known.search(head)), "")


_UNKNOWN: Final = "UNKNOWN_FORMAT: neither text nor a file of Kafka, by its first bytes"


def _is_utf_16(head: bytes) -> bool:
    """Whether it begins with the mark of UTF-16, or every other byte is 0, as of Latin text in it."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    odd, even = head[1:1024:2], head[0:1024:2]
    return any(8 < len(half) <= 2 * half.count(0) for half in (odd, even)) and any(
        4 * half.count(0) < len(half) for half in (odd, even)
    )


def _begins_like_segment(head: bytes) -> bool:
    """Whether it begins like a record batch of format 2: base offset, length, leader epoch, magic."""
    length = int.from_bytes(head[8:12], "big")
    return len(head) > 16 and head[0] == 0 and 49 <= length < 1 << 31 and head[16] == 2


def why_not_read(captured: Iterable[tuple[str, str | None]]) -> str:
    """Why the first of some files are not read, as the end of a sentence; empty if there is nothing to say.

    `captured`: each with its reason, empty if it is read; None: looked through here.
    """
    said: list[str] = []
    for path, given in sorted(captured, key=lambda file: (not file[1], file[0])):
        try:
            reason = reason_of_unknown(path) if given is None else given
        except READ_ERRORS as error:
            reason = reason_of(error, "CANNOT_OPEN")
        if reason == MAY_NOT:
            said.append(f"Permission denied: {path}")
        elif reason and not reason.startswith(NOTHING_LOST):
            said.append(f"{path}: {reason}")
        if len(said) == MOST_NAMED:
            break
    return f" ({'; '.join(said)})" if said else ""


def reason_of_unknown(path: str) -> str:
    """Why a text whose beginning shows nothing is not read: `NOT_A_KAFKA_FILE`, if nothing of Kafka's tools is in
    it."""
    position, before = 0, b""
    with open_text(path) as text:
        for chunk in text:
            found = _WORDS.search(piece := before + chunk)
            if found is not None:
                return (
                    f"OTHER_FORMAT: it has words of Kafka's tools from byte {position + found.start()} on, and its"
                    " beginning shows no line of them: cut off what stands before the tool's first line"
                )
            before = piece[-_LONGEST_WORD:]
            position += len(piece) - len(before)
        return "NOT_A_KAFKA_FILE" if text.problem is None else str(text.problem)
