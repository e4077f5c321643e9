"""The coordinator's state machine as a picture, drawn from its table. A changed table is a changed picture."""

from __future__ import annotations

from typing import Final

from drawing import AMBER, BLUE, GREEN, GREY, INK, MUTED, Drawing, Paint

from txnlib.core.kafka.transaction_state import (
    ACTIVE_STATES,
    COMPLETE_STATES,
    PREPARED_STATES,
    STEPS,
    Step,
    TransactionState,
)

_S = TransactionState
Node = TransactionState | None

#: state -> column and row; only those with a step are drawn.
PLACES: Final[dict[Node, tuple[int, int]]] = {
    None: (0, 1),
    _S.EMPTY: (1, 1),
    _S.ONGOING: (2, 1),
    _S.PREPARE_COMMIT: (3, 0),
    _S.PREPARE_ABORT: (3, 2),
    _S.COMPLETE_COMMIT: (4, 0),
    _S.COMPLETE_ABORT: (4, 2),
    _S.DEAD: (0, 3),
    _S.PREPARE_EPOCH_FENCE: (2, 3),
}
#: What a state means for whoever waits.
CAPTIONS: Final[dict[Node, str]] = {
    None: "new, or expired",
    _S.EMPTY: "has a producer id",
    _S.ONGOING: "lists partitions",
    _S.PREPARE_COMMIT: "sends COMMIT markers",
    _S.PREPARE_ABORT: "sends ABORT markers",
    _S.COMPLETE_COMMIT: "markers are written",
    _S.COMPLETE_ABORT: "markers are written",
}
WIDTH, HEIGHT = 144, 46
_LEFT, _TOP, _COLUMN, _ROW = 92, 114, 178, 90


def steps() -> dict[tuple[Node, Node], Step]:
    """Legal steps between different states; a retried append is none."""
    return {
        pair: step for pair, step in STEPS.items() if pair[0] != pair[1] and step in (Step.LEGAL, Step.TRANSACTIONS_V2)
    }


def state_picture() -> str:
    drawn = [node for node in PLACES if any(node in pair for pair in steps())]
    lowest = max(PLACES[node][1] for node in drawn)
    height = round(_TOP + lowest * _ROW + 148)
    told = "; ".join(f"{_name(before)} to {_name(after)}" for before, after in steps())
    drawing = Drawing(900, height, "States of a transactional id at its coordinator", f"Legal steps: {told}.")
    for (before, after), step in steps().items():
        is_v2 = step is Step.TRANSACTIONS_V2
        drawing.path(_route(before, after), MUTED if is_v2 else INK, is_dashed=is_v2, is_arrow=True)
    for node in drawn:
        x, y = _centre(node)
        drawing.box(x - WIDTH / 2, y - HEIGHT / 2, WIDTH, HEIGHT, _paint(node))
        drawing.text(x, y - 3, _name(node), anchor="middle", is_bold=True)
        drawing.text(x, y + 14, CAPTIONS.get(node, ""), anchor="middle", size=11)
    _legend(drawing, height - 18)
    return drawing.render()


def _legend(drawing: Drawing, y: float) -> None:
    drawing.path([(20, y - 4), (56, y - 4)], INK, is_arrow=True)
    drawing.text(64, y, "legal step", size=12)
    drawing.path([(150, y - 4), (186, y - 4)], MUTED, is_dashed=True, is_arrow=True)
    drawing.text(194, y, "only with transactions v2 (Kafka 4.0)", size=12)
    for x, paint, text in ((470, BLUE, "open"), (550, AMBER, "decided: markers are due"), (770, GREEN, "ended")):
        drawing.box(x, y - 11, 14, 14, paint)
        drawing.text(x + 20, y, text, size=12)


def _name(node: Node) -> str:
    return "no record" if node is None else node.kafka_name


def _paint(node: Node) -> Paint:
    if node in PREPARED_STATES:
        return AMBER
    if node in ACTIVE_STATES:
        return BLUE
    return GREEN if node in COMPLETE_STATES else GREY


def _centre(node: Node) -> tuple[float, float]:
    column, row = PLACES[node]
    return _LEFT + column * _COLUMN, _TOP + row * _ROW


def _route(before: Node, after: Node) -> list[tuple[float, float]]:
    """Back to an earlier column around the outside, the farther the wider; else straight."""
    (column, row), (to_column, to_row) = PLACES[before], PLACES[after]
    if row != 1 and to_row == 1 and to_column < column:
        return _around(before, after)
    (x, y), (to_x, to_y) = _centre(before), _centre(after)
    is_paired = (after, before) in steps()
    aside = 0.0 if not is_paired or row != to_row else 9.0 if column < to_column else -9.0
    y, to_y = y - aside, to_y - aside
    return [_edge(x, y, to_x, to_y, aside), _edge(to_x, to_y, x, y, aside)]


def _around(before: Node, after: Node) -> list[tuple[float, float]]:
    (x, y), (to_x, to_y) = _centre(before), _centre(after)
    outwards = -1 if y < to_y else 1
    distance = PLACES[before][0] - PLACES[after][0]
    port = x - WIDTH / 2 + distance * 30
    level = y + outwards * (HEIGHT / 2 + 4 + (distance - 1) * 22)
    edge = HEIGHT / 2
    return [(port, y + outwards * edge), (port, level), (to_x, level), (to_x, to_y + outwards * edge)]


def _edge(x: float, y: float, to_x: float, to_y: float, aside: float) -> tuple[float, float]:
    """Where the line from the middle of a box to another leaves the box."""
    half_width, half_height = WIDTH / 2, HEIGHT / 2 - abs(aside)
    run, rise = to_x - x, to_y - y
    share = min(half_width / abs(run) if run else 9.0, half_height / abs(rise) if rise else 9.0)
    return round(x + run * share, 1), round(y + rise * share, 1)
