"""Block reading of deep dumps: batch lines with all their record lines, without contents and header keys.

For such a block, the result of the line reader (`core.text.dump_reader`) depends on few bytes of each record line: its offset, and
that it ends after an empty list of header keys. Header keys and contents may imitate lines, so a block that has any is for the line
reader (docs/decisions/0013).
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from txnlib.core.text.dump_lines import TIMESTAMP_TYPES, DumpedBatch
from txnlib.core.text.record_lines import CONTROL_TYPES, contents_of, read_marker, read_record_line
from txnlib.readers.dump_blocks import START, BatchBlock, field_of, read_batch_lines
from txnlib.readers.header_columns import gather

_RECORD: Final = np.frombuffer(b"| offset: ", dtype=np.uint8)
_HEADER_KEYS: Final = b"headerKeys: ["
_NO_CONTENTS: Final = np.frombuffer(_HEADER_KEYS + b"]\n", dtype=np.uint8)
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


def read_plain_records(block: bytes, next_position: int, last_offset: int) -> BatchBlock | None:
    """The batches of complete lines, each with all its records; None if the block contains anything else.

    The last batch line and all lines after it are left out, because more of its records may follow the block.
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
    if not _have_one_list_each(block, end, len(records)):
        return None
    if not _are_without_text(block, starts[records], stops[records], of_batch, columns):
        return None
    last = int(offsets[-1]) if counts[-1] else int(field_of(columns, "base_offset")[-1]) - 1
    return BatchBlock(columns, end, last)


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
    is_higher = (offsets[1:] > offsets[:-1]) | (of_batch[1:] != of_batch[:-1])
    return bool(is_in.all() and is_higher.all())


def _have_one_list_each(block: bytes, end: int, lines: int) -> bool:
    """Whether each of these record lines has exactly one list of header keys, given that each has at least one."""
    # If there are no more brackets than lines, there are no more lists. This check takes a sixth of the time.
    brackets = np.count_nonzero(np.frombuffer(block, np.uint8, end) == ord("["))
    return bool(brackets == lines) or block.count(_HEADER_KEYS, 0, end) == lines


def _are_without_text(block: bytes, starts: Any, stops: Any, of_batch: Any, columns: Any) -> bool:
    """Whether each record line ends after its empty list, or is a marker's. Also writes the marker types into `columns`."""
    if (field_of(columns, "records_count")[field_of(columns, "is_control") != 0] > 1).any():
        return False
    is_control = field_of(columns, "is_control")[of_batch] != 0
    ends_empty = (gather(block, stops - len(_NO_CONTENTS), len(_NO_CONTENTS), len(block)) == _NO_CONTENTS).all(axis=1)
    if not (is_control | ends_empty).all():
        return False
    timestamp_type = int(field_of(columns, "timestamp_type")[0])
    for index in np.flatnonzero(is_control).tolist():
        marker = _read_control(block[starts[index] : stops[index]], timestamp_type)
        if marker is None:
            return False
        columns[of_batch[index], _CONTROL_TYPE], columns[of_batch[index], _COORDINATOR_EPOCH] = marker
    return True


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
