"""Genuine lines among lines that look like batches: those on the chain that the most lines form."""

from __future__ import annotations

from typing import Final, NamedTuple

from txnlib.core.text.dump_lines import DumpedBatch

#: If this many lines that look like batches form one chain, with none left over between them, the first is genuine.
BATCHES_AHEAD: Final = 32
#: Otherwise, the number of lines to judge together, so that the lines after a shorter imitation outweigh it; and how many of them
#: to settle.
BATCHES_TOGETHER: Final = 2 * BATCHES_AHEAD
_BATCHES_SETTLED: Final = BATCHES_AHEAD

#: Score of a chain for each line, and penalty for missing lines or offsets: two forged lines further on gain nothing, and three
#: genuine lines outweigh damage.
_GAIN: Final = 1.0
COST_OF_A_GAP: Final = 2.5
_COST_OF_MISSING_OFFSETS: Final = 0.25
_GAIN_BY_OWN_RECORD: Final = 2.0


class Candidate(NamedTuple):
    """A line that looks like a batch: its position in the text, and the number of `Dumping` lines since the first candidate."""

    position: int
    batch: DumpedBatch
    files: int


class Link(NamedTuple):
    """The end of a chain of lines: its next position, its last offset and its score.

    `before`: the index of the line before its last one; None: there is none. `files`: the number of `Dumping` lines before it.
    """

    end: int
    last_offset: int
    score: float = 0
    before: int | None = None
    files: int = 0


def genuine_lines(candidates: list[Candidate], roots: tuple[Link, ...], *, has_own_record: bool) -> tuple[set[int], int]:
    """The positions of genuine batch lines among those that look like one, and the end of the lines that are settled.

    The first of `roots` is the end of the chain before them. Lines in a payload may form a chain, too, and may even start where a
    genuine line is expected. But their chain ends with the payload, and the genuine chain continues. So if all lines form one chain
    for long enough, that chain is genuine. If all contents were measured so far, no payload is open. Then a gap can only be damage,
    and `has_own_record`, a record line after the first batch line, is sufficient proof.
    """
    straight = _straight(candidates)
    first, (next_position, last_offset, *_) = candidates[0], roots[0]
    if straight[0] >= BATCHES_AHEAD and first.batch.position == next_position and first.batch.base_offset > last_offset:
        settled = straight[0] - BATCHES_AHEAD + 1
        return {candidate.position for candidate in candidates[:settled]}, candidates[settled].position
    links = _links(candidates, roots, _GAIN_BY_OWN_RECORD if has_own_record else 0)
    last = max(range(len(links)), key=lambda index: links[index].score)
    if links[last].score <= 0:
        # Each of the other lines may be proven by its own record line.
        return set(), first.position + 1
    genuine: set[int] = set()
    step: int | None = last
    while step is not None:
        genuine.add(candidates[step].position)
        step = links[step].before
    # Restart scoring at the first unbroken run, so the result does not depend on where reading started.
    settled = _BATCHES_SETTLED if len(candidates) == BATCHES_TOGETHER else len(candidates)
    settled = next((index for index in range(1, settled) if straight[index] >= BATCHES_AHEAD), settled)
    return genuine, candidates[settled].position if settled < len(candidates) else candidates[-1].position + 1


def _straight(candidates: list[Candidate]) -> list[int]:
    """For each line, the length of the unbroken run that starts with it: each batch starts where the one before it ends."""
    lengths = [1] * len(candidates)
    for index in range(len(candidates) - 2, -1, -1):
        batch, after = candidates[index].batch, candidates[index + 1].batch
        if batch.end == after.position and batch.last_offset < after.base_offset:
            lengths[index] = lengths[index + 1] + 1
    return lengths


def _links(candidates: list[Candidate], roots: tuple[Link, ...], gain_of_first: float) -> list[Link]:
    """For each line the best chain that ends with it. `gain_of_first` lowers the first line's penalty for a gap.

    After a `Dumping` line, whether genuine or in a payload, a chain continues only with the very next offset: the next file of a
    partition may have batches at the same positions.
    """
    links: list[Link] = []
    for _position, batch, files in candidates:
        best = Link(batch.end, batch.last_offset, float("-inf"), None, files)
        for index, before in enumerate([*roots, *links], -len(roots)):
            has_gap, skips = before.end < batch.position, before.last_offset + 1 < batch.base_offset
            if before.last_offset >= batch.base_offset or before.end > batch.position:
                continue
            if before.files < files and (has_gap or skips):
                continue
            score = before.score + _GAIN - (_COST_OF_MISSING_OFFSETS if skips else 0)
            if has_gap:
                score -= COST_OF_A_GAP - (0 if links else gain_of_first)
            if score > best.score:
                best = best._replace(score=score, before=index if index >= 0 else None)
        links.append(best)
    return links
