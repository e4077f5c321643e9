"""Block reading of deep dumps: batch lines with all their record lines, without contents.

For such a block, the result of the line reader (`core.text.dump_reader`) depends on few bytes of each record line: its offset, and
whether it ends where contents would begin. Header keys may imitate lines, but imitated lines come in addition to the records that
the batches count, and they do not lead to the position of the next genuine batch. So a block is accepted only if no line in it is
left over, up to as many batches ahead as the line reader looks: the line reader would find the same chain.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from txnlib.core.text.batch_chain import BATCHES_AHEAD
from txnlib.core.text.dump_lines import TIMESTAMP_TYPES, DumpedBatch
from txnlib.core.text.record_lines import CONTROL_TYPES, KEY, PAYLOAD, contents_of, read_marker, read_record_line
from txnlib.readers.batch_headers import gather
from txnlib.readers.dump_blocks import START, PlainBatches, field_of, read_batch_lines

_RECORD: Final = np.frombuffer(b"| offset: ", dtype=np.uint8)
_HEADER_KEYS: Final = b"headerKeys: ["
_NEXT_RECORD: Final = b"\n| offset: "
_NO_CONTENTS: Final = np.frombuffer(_HEADER_KEYS + b"]\n", dtype=np.uint8)
#: A record line up to its header keys, if it has any.
_HEAD_OF_KEYS: Final = re.compile(
    rb"\| offset: \d+ (CreateTime:|LogAppendTime:) -?\d{1,18} key[sS]ize: -?\d{1,10} value[sS]ize: -?\d{1,10} sequence: -?\d{1,10} "
    rb"headerKeys: \[(?!\])"
)
#: How contents begin, if there are any after the header keys.
_CONTENTS: Final = (b"]" + KEY, b"]" + PAYLOAD)
#: The offset ends within this number of bytes after `| offset: `; every line is longer.
_NUMBER: Final = 20
_SHORTEST: Final = 40
_MOST_DIGITS: Final = 18
#: A marker as brokers write it and as the tool prints it since 2.2. This pattern takes a sixth of the time of the general parser.
_MARKER: Final = re.compile(
    rb"\| offset: \d+ (CreateTime:|LogAppendTime:) \d{1,18} key[sS]ize: 4 value[sS]ize: 6 sequence: -1 headerKeys: \[\] "
    rb"endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: (\d{1,9})\n"
)
_CONTROL_TYPE, _COORDINATOR_EPOCH = (DumpedBatch._fields.index(name) for name in ("control_type", "coordinator_epoch"))


def may_be_plain(block: bytes) -> bool:
    """Whether complete lines may be such a block: a fast check of the line starts and contents labels."""
    lines = block.count(b"\n")
    if block.count(_NEXT_RECORD) + block.count(b"\n" + START) + block.startswith(START) != lines:
        return False
    return not _may_have_contents(block, len(block))


def _may_have_contents(block: bytes, end: int) -> bool:
    return any(block.find(label, 0, end) >= 0 for label in _CONTENTS)


def read_plain_records(block: bytes, next_position: int, last_offset: int, *, has_open_text: bool = False) -> PlainBatches | None:
    """The batches of complete lines, each with all its records; None if the block contains anything else.

    The last batch line and all lines after it are left out, because more of its records may follow the block. If free text is open
    before the block or printed in it, the last 32 batches (`BATCHES_AHEAD`) are left out, too: they only prove the others genuine.
    """
    end = block.rfind(b"\n" + START) + 1
    if not end or not block.startswith(START):
        return None
    data = np.frombuffer(block, dtype=np.uint8, count=end)
    stops = np.flatnonzero(data == ord("\n")) + 1
    starts = np.concatenate([[0], stops[:-1]])
    if (stops - starts).min() < _SHORTEST:
        return None
    is_record = data[starts] == _RECORD[0]
    batches, records = np.flatnonzero(~is_record), np.flatnonzero(is_record)
    columns = read_batch_lines(_joined(block, starts[batches], stops[batches]), next_position, last_offset)
    counts = np.diff(batches, append=len(starts)) - 1
    if columns is None or not len(records) or (counts != field_of(columns, "records_count")).any():
        return None
    of_batch = np.repeat(np.arange(len(counts)), counts)
    offsets = _offsets(block, starts[records])
    if offsets is None or not _are_held(offsets, of_batch, columns):
        return None
    has_keys = _have_header_keys(block, end, starts[records], stops[records], of_batch, columns)
    if has_keys is None:
        return None
    ends = np.append(starts[batches[1:]], end)
    count = len(columns)
    if has_open_text or has_keys.any():
        count = min(count, len(columns) + 1 - BATCHES_AHEAD)
    if count <= 0:
        return None
    taken = int(np.searchsorted(of_batch, count))
    last = int(offsets[taken - 1]) if counts[count - 1] else int(field_of(columns, "base_offset")[count - 1]) - 1
    of_last = has_keys[taken - int(counts[count - 1]) : taken]
    return PlainBatches(columns[:count], int(ends[count - 1]), last, bool(has_keys[:taken].any()), bool(of_last.any()))


def _joined(block: bytes, starts: Any, stops: Any) -> bytes:
    return b"".join([block[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)])


def _offsets(block: bytes, starts: Any) -> Any:
    """The offset in each line; None if one is not a record line."""
    if not (gather(block, starts, len(_RECORD), len(block)) == _RECORD).all():
        return None
    digits = gather(block, starts + len(_RECORD), _NUMBER, len(block))
    lengths = (digits == ord(" ")).argmax(axis=1)
    values = np.empty(len(starts), dtype=np.int64)
    for length in np.unique(lengths).tolist():
        of_length = lengths == length
        numbers = digits[of_length, :length].astype(np.int64) - ord("0")
        if not 0 < length <= _MOST_DIGITS or numbers.min() < 0 or numbers.max() > 9:
            return None
        values[of_length] = numbers @ 10 ** np.arange(length - 1, -1, -1)
    return values


def _are_held(offsets: Any, of_batch: Any, columns: Any) -> bool:
    """Whether each record is within its batch's offsets and above the previous record of the batch (`Chain.holds`)."""
    is_in = (offsets >= field_of(columns, "base_offset")[of_batch]) & (offsets <= field_of(columns, "last_offset")[of_batch])
    is_behind = (offsets[1:] > offsets[:-1]) | (of_batch[1:] != of_batch[:-1])
    return bool(is_in.all() and is_behind.all())


def _have_header_keys(block: bytes, end: int, starts: Any, stops: Any, of_batch: Any, columns: Any) -> Any:
    """Whether each record has header keys; None if one may have contents. Also writes the marker types into `columns`."""
    # A line that ends after an empty list may end in the middle of its header keys. Here every line has at least one list.
    if not _have_one_list_each(block, end, len(starts)):
        return None
    is_control = field_of(columns, "is_control")[of_batch] != 0
    if (field_of(columns, "records_count")[field_of(columns, "is_control") != 0] > 1).any():
        return None
    timestamp_type = int(field_of(columns, "timestamp_type")[0])
    ends = stops - len(_NO_CONTENTS)
    has_keys = ~is_control & ~(gather(block, ends, len(_NO_CONTENTS), len(block)) == _NO_CONTENTS).all(axis=1)
    for index in np.flatnonzero(has_keys).tolist():
        head = _HEAD_OF_KEYS.match(block, starts[index], stops[index])
        if head is None or TIMESTAMP_TYPES[head[1].lower()] != timestamp_type:
            return None
    if has_keys.any() and _may_have_contents(block, end):
        return None
    for index in np.flatnonzero(is_control).tolist():
        marker = _read_control(block[starts[index] : stops[index]], timestamp_type)
        if marker is None:
            return None
        columns[of_batch[index], _CONTROL_TYPE], columns[of_batch[index], _COORDINATOR_EPOCH] = marker
    return has_keys


def _have_one_list_each(block: bytes, end: int, lines: int) -> bool:
    """Whether each of these record lines has exactly one list of header keys, given that each has at least one."""
    # If there are no more brackets than lines, there are no more lists. This check takes a sixth of the time.
    brackets = np.count_nonzero(np.frombuffer(block, np.uint8, end) == ord("["))
    return bool(brackets == lines) or block.count(_HEADER_KEYS, 0, end) == lines


def _read_control(line: bytes, timestamp_type: int) -> tuple[int, int] | None:
    """Control type and coordinator epoch in the record line of a control batch; None for any other or a broken line."""
    usual = _MARKER.fullmatch(line)
    if usual is not None:
        label, name, epoch = usual.groups()
        return (CONTROL_TYPES[name], int(epoch)) if TIMESTAMP_TYPES[label.lower()] == timestamp_type else None
    record = read_record_line(line)
    if record is None or record.timestamp_type != timestamp_type or not record.has_header_keys:
        return None
    return next((read_marker(contents) for contents in contents_of(record)), None)
