"""What was given and not read: why, and in which words.

A verdict is about what was read. So each file, folder, link or stretch of a file that was given and not read is said,
with or without a partition (docs/rules/copies.md#what-was-given-and-not-read).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from txnlib.core.display import counted, printable, size

#: How the reasons begin of what has nothing that an audit needs: text between the lines of a tool, what was taken off
#: each line, what is printed again, records that a broker skips, too, and files without a word of Kafka's tools, which
#: were looked through.
NOTHING_LOST: Final = ("NOT_DUMP_TEXT", "LINE_FORM", "PRINTED_AGAIN", "UNKNOWN_KEY_VERSION", "NOT_A_KAFKA_FILE")
#: How the reason begins of what the user of the audit may not open.
PERMISSION_DENIED: Final = "PERMISSION_DENIED"
#: How the reasons begin of files and folders that were not opened at all: what was seen of them is not damage.
_NOT_OPENED: Final = {
    PERMISSION_DENIED: "Permission denied",
    "LINK_OUT_OF_INPUT": "a link that was not followed",
    "MISSING_SEGMENT": "its index was captured alone",
    "CANNOT_LIST": "cannot be listed",
    "CANNOT_OPEN": "cannot be opened",
    "NOT_A_REGULAR_FILE": "no regular file",
    "TOO_LARGE": "too large for a segment",
    "NAME_OUT_OF_RANGE": "its name is out of range",
    "ARCHIVE": "an archive",
    "PACKED": "packed",
}
#: Most paths of one reason to name in a sentence.
_NAMED: Final = 2


def why_not_opened(reason: str) -> str | None:
    """Why a file or folder was not opened, in words; None if it was, and something in it could not be read."""
    return _NOT_OPENED.get(reason.partition(":")[0])


class _Words(NamedTuple):
    """What files with a reason are, and what is said of them; `{was}` is for one or for several."""

    noun: str
    said: str


#: Reasons of whole files, in the order in which they are said.
_WHOLE: Final = {
    "TOPIC_PARTITION_UNKNOWN": _Words("text", "could not be placed"),
    "LINK_OUT_OF_INPUT": _Words("link", "{was} not followed"),
    "ARCHIVE": _Words("archive", "{was} not unpacked"),
    "PACKED": _Words("packed file", "{was} not unpacked"),
    "CANNOT_UNPACK": _Words("packed file", "could not be unpacked to its end"),
    "CANNOT_LIST": _Words("folder", "could not be listed"),
    "CANNOT_OPEN": _Words("file", "could not be opened"),
    "NOT_A_REGULAR_FILE": _Words("path", "{was} not opened"),
    "MISSING_SEGMENT": _Words("segment", "{was} not captured beside its index"),
    "NO_PARTITION_FOLDER": _Words("partition's file", "could not be placed"),
    "TOO_LARGE": _Words("file", "{was} not opened"),
    "NAME_OUT_OF_RANGE": _Words("file", "{was} not opened"),
    "UTF_16": _Words("text", "could not be read"),
    "OTHER_FORMAT": _Words("file", "could not be read"),
    "UNKNOWN_FORMAT": _Words("file", "could not be read"),
    "EMPTY_TEXT": _Words("text", "{was} empty"),
}
#: Reasons of the end of a file that is cut, or was still being written.
_CUT: Final = ("INCOMPLETE_BATCH", "CUT_LINE", "INCOMPLETE_TRANSACTION_INDEX", "FILE_SHRANK")
_ORDER: Final = {code: rank for rank, code in enumerate((PERMISSION_DENIED, *_WHOLE))}


@dataclass(frozen=True, slots=True)
class UnreadFiles:
    """The files, or parts of files, that were not read for one reason."""

    #: How the reason begins, up to its colon.
    code: str
    files: int
    bytes: int
    #: The first of their paths.
    paths: Sequence[str]

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sort key: files that were not read at all come before files that were read in part; of each, the largest
        first."""
        return _ORDER.get(self.code, len(_ORDER)), -self.bytes, self.code

    @property
    def says(self) -> str:
        """How much, what happened, and where."""
        if self.code == PERMISSION_DENIED:
            return f"Permission denied: {self._where}"
        amount = f" of {size(self.bytes)}" if self.bytes else ""
        words = _WHOLE.get(self.code)
        if words is not None:
            said = words.said.format(was="was" if self.files == 1 else "were")
            return f"{counted(self.files, words.noun)}{amount} {said}: {self._where}"
        in_files = counted(self.files, "file")
        if self.code in _CUT:
            lost = f"{size(self.bytes)} at the end of {in_files} could not be read" if self.bytes else f"{in_files} cut"
            return f"{lost}: {self._where}"
        lost = f"{size(self.bytes)} of {in_files} could not be read" if self.bytes else f"a part of {in_files} is lost"
        return f"{lost}: {self._where}"

    @property
    def _where(self) -> str:
        named = ", ".join(map(printable, self.paths[:_NAMED]))
        more = self.files - min(len(self.paths), _NAMED)
        return f"{named} and {more} more" if more > 0 else named
