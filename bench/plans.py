"""The plans of an audit on the embedded engine: how many, and how large.

To plan a query takes most of the time of a small audit, and these figures do not depend on the machine.

    python bench/plans.py CAPTURE     a line for each plan of an audit: its step and bytes; then the sums
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """A plan that the engine was asked to carry out."""

    step: str
    bytes: int


@contextmanager
def counted() -> Iterator[list[Plan]]:
    """A list to which each plan of this process is added."""
    from pyspark.sql.connect.client import SparkConnectClient

    from txnlib.engine.embedded import EmbeddedEngine
    from txnlib.pipeline import scheduler

    client: Any = SparkConnectClient
    asked, taken, plans, now = client._execute_and_fetch_as_iterator, scheduler._told, list[Plan](), ["open"]

    def ask(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        plans.append(Plan(now[0], request.plan.ByteSize()))
        return asked(self, request, *args, **options)

    def take(run: Any, step: Any) -> Any:
        now[0] = step.name
        return taken(run, step)

    client._execute_and_fetch_as_iterator, scheduler._told = ask, take
    at_once, EmbeddedEngine.steps_at_once = EmbeddedEngine.steps_at_once, 1  # so that each plan is of one step
    try:
        yield plans
    finally:
        client._execute_and_fetch_as_iterator, scheduler._told = asked, taken
        EmbeddedEngine.steps_at_once = at_once


def main() -> None:
    import txnlib

    with TemporaryDirectory() as folder, counted() as plans:
        txnlib.audit(sys.argv[1], output=folder)
    for plan in plans:
        print(f"{plan.step:24} {plan.bytes:9,}")
    print(f"{len(plans)} plans, {sum(plan.bytes for plan in plans):,} bytes")


if __name__ == "__main__":
    main()
