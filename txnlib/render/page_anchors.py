"""Anchors of the report page.

An anchor names the same thing on every page of the cluster, today and tomorrow. Names from a log may contain any character. Those
that Kafka does not allow in topics are encoded. So different names have different anchors, and an anchor needs no quoting in HTML,
in a URL or in a selector.
"""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup

from txnlib.queries.broken_transactions import BrokenTransaction
from txnlib.queries.rows import Row

_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")


def encoded(name: str) -> str:
    """A name with each character outside of `[A-Za-z0-9._-]` as `~HEX~`, the number of the character."""
    return _ODD.sub(lambda match: f"~{ord(match[0]):x}~", name)


def transaction_anchor(row: Row) -> str:
    """`payments-0-24`: topic, partition and start offset of an open transaction."""
    return f"{encoded(row['topic'])}-{row['partition']}-{row['start_offset']}"


def partition_anchor(kind: str, row: Row) -> str:
    """`lag:payments-0`: what the page says of a partition. No topic has a colon, so no other anchor is the same."""
    return f"{kind}:{encoded(row['topic'])}-{row['partition']}"


def broken_anchor(broken: BrokenTransaction) -> str:
    """`split:payments-batch-7-3`: a transaction that is split or half-marked, by its id and number."""
    return f"split:{encoded(broken.transactional_id)}-{broken.number}"


class Ids:
    """The ids of one page. Each is given to one element only, whatever the tables contain."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def once(self, anchor: str) -> Markup:
        """The attribute ` id="…"` for the first element with an anchor; nothing for the others."""
        if anchor in self._given:
            return Markup()
        self._given.add(anchor)
        return Markup(' id="{}"').format(anchor)
