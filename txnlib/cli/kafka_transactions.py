"""The commands of Kafka's own tool: `list`, `describe`, `describe-producers` and `find-hanging`."""

from __future__ import annotations

from argparse import Namespace

from txnlib.core.verdicts.find_hanging import SearchScope
from txnlib.errors import UsageError
from txnlib.queries.hanging_search import hanging_search
from txnlib.queries.producers import producers_of
from txnlib.queries.rows import StoredRun
from txnlib.queries.transactional_ids import transactional_id, transactional_ids
from txnlib.render import kafka_output
from txnlib.render.command_output import KAFKA, CommandOutput


def list_transactions(run: StoredRun, options: Namespace) -> CommandOutput:
    """Every transactional id that has not expired and that passes the filters. Raises UsageError for an invalid expression."""
    ids = transactional_ids(
        run,
        longer_than_ms=options.duration_filter,
        pattern=options.transactional_id_pattern,
        with_order=_is_in_kafka_order(options),
    )
    return kafka_output.list_output(ids)


def describe(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transactional id. Raises UsageError if no captured coordinator has it."""
    named = options.id if options.transactional_id is None else options.transactional_id
    if named is None or None not in (options.id, options.transactional_id):
        raise UsageError("describe needs one transactional id")
    return kafka_output.describe_output(transactional_id(run, named), run.as_of_ms)


def describe_producers(run: StoredRun, options: Namespace) -> CommandOutput:
    """The producers of a partition. Raises UsageError if no copy of it was read."""
    return kafka_output.describe_producers_output(
        producers_of(run, options.topic, options.partition, with_order=_is_in_kafka_order(options))
    )


def find_hanging_transactions(run: StoredRun, options: Namespace) -> CommandOutput:
    """What the live `find-hanging` would have printed at the instant of the run. Raises UsageError as the tool does."""
    scope = SearchScope(options.topic, options.partition, options.broker_id)
    if options.format == KAFKA:
        scope.check()
    return kafka_output.find_hanging_output(
        hanging_search(run, scope, options.max_transaction_timeout, with_order=_is_in_kafka_order(options))
    )


def _is_in_kafka_order(options: Namespace) -> bool:
    """Whether the rows are printed in the order of Kafka's tool, which takes a query more."""
    return bool(options.format == KAFKA)
