"""One transaction over all of its partitions, as text."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from txnlib.core.display import printable, utc_time
from txnlib.core.verdicts.transaction_outcome import WHOLE_MEANINGS
from txnlib.queries.rows import Row, StoredRun
from txnlib.queries.whole_transaction import OUTCOME, ExplainedTransaction, whole_transaction
from txnlib.render.command_output import CommandOutput
from txnlib.render.grid import instant_json
from txnlib.render.story_text import clock
from txnlib.render.text_width import WIDTH

_SHOWN: Final = ("partition", "marker", "marker_offset", "outcome", "records", "written by a broker at")
_LABEL: Final = 13


def whole_transaction_output(whole: ExplainedTransaction) -> CommandOutput:
    """The partitions as a table, the coordinator's records above it, and what is missing below."""
    rows = whole.partitions or whole.unexplained
    return CommandOutput(
        OUTCOME,
        [_plain(row) for row in rows],
        people=[_line(row) for row in rows],
        shown=_SHOWN,
        head=_head(whole),
        tail=lambda width: _tail(whole, width),
        whole=lambda: _for_programs(whole),
    )


def _line(row: Row) -> Row:
    return row | {
        "partition": f"{printable(row['topic'])}-{row['partition']}",
        "written by a broker at": None if row["marked"] is None else clock(row["marked"]),
    }


def _head(whole: ExplainedTransaction) -> str:
    owner = "no transactional id known" if whole.transactional_id is None else printable(whole.transactional_id)
    numbered = "" if whole.number is None else f"   transaction {whole.number}"
    producer = "" if whole.producer_id is None else f"   producer {whole.producer_id}"
    epoch = "" if whole.producer_epoch is None else f" epoch {whole.producer_epoch}"
    out = [
        f"{owner}{numbered}{producer}{epoch}",
        f"cluster {printable(whole.cluster)}, as of {utc_time(whole.as_of_ms)}, run {printable(whole.run_id)}",
        "",
    ]
    if whole.outcome is not None:
        decided = "not decided" if whole.decided_outcome == "OPEN" else f"decided: {whole.decided_outcome}"
        out += [f"{whole.outcome.value}  {WHOLE_MEANINGS[whole.outcome]}; {decided}", ""]
    if whole.records:
        out.append(f"AT ITS COORDINATOR, __transaction_state-{whole.coordinator_partition}")
        out += [_record(record) for record in whole.records]
        out.append("")
    out.append("ON ITS PARTITIONS" if whole.partitions else "ON PARTITIONS, without a record of its coordinator")
    if not whole.partitions and whole.number is not None:
        out.insert(
            -1, "Its coordinator's list of partitions is lost, and no marker was written between its start and its completion.\n"
        )
    return "\n".join(out) + "\n"


def _record(record: Row) -> str:
    state = "expires" if record["is_tombstone"] else record["state"]
    at = "not known" if record["timestamp_ms"] is None else clock(record["timestamp_ms"])
    places = ", ".join(f"{printable(place['topic'])}-{place['partition']}" for place in record["partitions"] or ())
    who = "" if record["producer_id"] is None else f"producer {record['producer_id']} epoch {record['producer_epoch']}"
    return f"  @{record['offset']:<8} {at:<25} {state:<15} {who}  {places}".rstrip()


def _tail(whole: ExplainedTransaction, width: int = WIDTH) -> str:
    out = [""]
    for row in whole.partitions:
        if row["says"] is not None:
            out += _wrapped(width, f"{row['topic']}-{row['partition']}", row["says"])
    out += _effects(whole, width)
    if whole.repairs:
        out += ["", "TO REPAIR  what would write the missing markers; txn-audit itself never writes to a cluster"]
        for repair in whole.repairs:
            out += _repair(repair, width)
    if whole.unexplained and whole.partitions:
        out += ["", f"NOT EXPLAINED by any record of its coordinator, newest first: {len(whole.unexplained)}"]
        out += [_unexplained(row) for row in whole.unexplained]
    others = [number for number in whole.numbers if number != whole.number]
    if others:
        span = str(others[0]) if len(others) == 1 else f"{min(others)} to {max(others)}"
        out += ["", f"other transactions of the id: {span} (--number N shows one)"]
    return "".join(f"{line}\n" for line in out)


def _effects(whole: ExplainedTransaction, width: int) -> list[str]:
    """What the transaction holds, and what its end changes."""
    held = [row for row in whole.partitions if row["outcome"] == "OPEN"]
    ended = [row for row in whole.partitions if row["outcome"] in ("COMMIT", "ABORT")]
    if not held:
        return []
    records = sum(row["records"] or 0 for row in held)
    says = f"it holds {_number(records, 'record')} on {_number(len(held), 'partition')}"
    for outcome in ("COMMIT", "ABORT"):
        number = sum(row["outcome"] == outcome for row in ended)
        if number:
            says += f"; {_number(number, 'partition')} already ended with {outcome}"
    return _wrapped(width, "holds", says)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _repair(repair: Row, width: int) -> list[str]:
    copies = ", ".join(f"broker {copy['broker']} at offset {copy['offset']}" for copy in repair["copies"] or ())
    lines = [
        f"  {printable(repair['topic'])}-{repair['partition']}   {repair['marker']}",
        *_wrapped(width, "  consumers", repair["consumers_saw"]),
        *_wrapped(width, "  marker in", copies or "no captured copy"),
        *_wrapped(width, "  sent by", repair["tool"]),
    ]
    return lines if repair["request"] is None else [*lines, f"    {'request':<{_LABEL - 2}}{printable(repair['request'])}"]


def _unexplained(row: Row) -> str:
    marker = "no marker" if row["marker_offset"] is None else f"{row['outcome']} marker at offset {row['marker_offset']}"
    at = "" if row["marked"] is None else f"   {clock(row['marked'])}"
    return f"  {printable(row['topic'])}-{row['partition']} from offset {row['first_offset']}: {marker}{at}"


def _wrapped(width: int, label: str, text: object) -> list[str]:
    line = f"  {printable(label):<{_LABEL}}{printable(text)}"
    return textwrap.wrap(line, width, subsequent_indent=" " * (2 + _LABEL), break_on_hyphens=False, break_long_words=False)


def _plain(row: Row) -> Row:
    return row | {name: None if row[name] is None else instant_json(row[name]) for name in ("marked", "decided")}


def _for_programs(whole: ExplainedTransaction) -> dict[str, Any]:
    """The whole transaction for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    lists: dict[str, Sequence[Row]] = {"partitions": whole.partitions, "unexplained": whole.unexplained}
    return {**asdict(whole), **{name: [_plain(row) for row in rows] for name, rows in lists.items()}}


def transaction(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transaction with all its partitions. Raises UsageError if no captured log has it."""
    return whole_transaction_output(whole_transaction(run, options.id, options.number))
