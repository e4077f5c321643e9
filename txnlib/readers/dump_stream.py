"""Events of a dump: lines read by the core, and blocks of batches read here.

The core's reader decides where a block may begin, and continues after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from txnlib.core.text.batch_chain import BatchChain, Line
from txnlib.core.text.dump_events import Dumped
from txnlib.core.text.dump_reader import DumpReader
from txnlib.readers.dump_blocks import START, BatchBlock, read_plain_batches
from txnlib.readers.text_lines import TextLines

#: Number of bytes to read line by line before trying a block again.
_ONE_BY_ONE: Final = 4_096
_MOST_ONE_BY_ONE: Final = 16 << 20

Event = Dumped | BatchBlock


class DumpStream:
    """The events of the lines, in order, each read once. Lines of `TextLines` are read in blocks where possible.

    `topic` is the topic of files whose path does not contain it.
    """

    def __init__(self, lines: Iterable[Line], topic: str | None) -> None:
        self.reader = DumpReader(lines, topic)
        self._text = lines if isinstance(lines, TextLines) else None
        self._blocks = None if self._text is None else BlockTaker(self._text)

    def __iter__(self) -> Iterator[Event]:
        reader, blocks = self.reader, self._blocks
        while True:
            chain = reader.chain
            if blocks is not None and chain is not None and chain.is_plain and (block := blocks.take(reader.lines.held, chain)):
                reader.skip_batches(block.chained, block.size)
                yield from reader.take_events()
                yield block
            elif self._text is not None and not reader.lines.held and reader.skips_empty and (count := self._text.skip_empty()):
                reader.skip_empty(count)
            elif not reader.read_line():
                break
            elif reader.out.values:
                yield from reader.take_events()
        reader.end_text(None if self._text is None else self._text.problem)
        yield from reader.take_events()


class BlockTaker:
    """Takes blocks from a text. After a failure, it waits for more and more lines before it tries again."""

    def __init__(self, text: TextLines) -> None:
        self._text = text
        #: Where to try a block again, and how many bytes to read line by line if that fails.
        self._next_try, self._one_by_one = 0, _ONE_BY_ONE

    def take(self, held: deque[Line], chain: BatchChain) -> BatchBlock | None:
        """The next lines as a block; None if not all are batch lines that continue the chain.

        `held`: lines that were yielded but not read yet. They become part of the block.
        """
        position = self._text.position_of(held)
        if position < self._next_try or not self._text.begins_with(START, held):
            return None
        lines = self._text.take_block(held)
        block = None if lines is None else read_plain_batches(lines, chain.next_position, chain.last_offset)
        if lines is not None:
            size = 0 if block is None else block.size
            self._text.give_back(lines[size:], position + size)
        if block is None:
            self._next_try, self._one_by_one = position + self._one_by_one, min(2 * self._one_by_one, _MOST_ONE_BY_ONE)
        else:
            self._one_by_one = _ONE_BY_ONE
        return block
