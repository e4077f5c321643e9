"""Settings that were not given, inferred from the records."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.coordinator_partition import CountBasis, count_partitions
from txnlib.pipeline.run import Run
from txnlib.settings import default_of

#: Transactional ids used to infer the number of coordinator partitions. Each further id rules out most wrong numbers.
INFERRED_FROM_IDS: Final = 200


def infer_settings(run: Run) -> None:
    """Infers `transaction.max.timeout.ms` and the number of coordinator partitions, each unless it was given."""
    _infer_transaction_max_timeout(run)
    _infer_coordinator_partitions(run)


def _infer_transaction_max_timeout(run: Run) -> None:
    """Raises the assumed `transaction.max.timeout.ms` to the largest stored timeout: brokers refuse larger ones."""
    if not run.settings.is_transaction_max_timeout_assumed:
        return
    timeout = F.col("transaction_timeout_ms")
    stored = run.tables.read("transaction_log").where(~timeout.isin(*TWO_PHASE_COMMIT_TIMEOUTS))
    largest = stored.agg(F.max(timeout)).first()
    if largest is not None and largest[0] is not None and largest[0] > run.settings.transaction_max_timeout_ms:
        run.settings = run.settings.model_copy(update={"transaction_max_timeout_ms": largest[0]})


def _infer_coordinator_partitions(run: Run) -> None:
    """Infers the number of coordinator partitions from the ids in the records, unless it was given."""
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN:
        return
    highest = run.tables.read("segments").where(F.col("topic") == TRANSACTION_STATE_TOPIC).agg(F.max("partition")).first()
    # Console records were placed by this number, so they cannot prove it.
    records = run.tables.read("transaction_log").where(~F.col("source").startswith("console:"))
    count, basis = _count_partitions(records, None if highest is None else highest[0])
    inferred = {"coordinator_partitions": count, "coordinator_partitions_basis": basis.value}
    run.settings = run.settings.model_copy(update=inferred)


def _count_partitions(records: DataFrame, highest: int | None) -> tuple[int, CountBasis]:
    """The number of coordinator partitions by the ids in some records, at least up to the highest one captured, and its basis."""
    known = records.where(F.col("partition").isNotNull())
    rows = known.select("transactional_id", "partition").distinct().limit(INFERRED_FROM_IDS).collect()
    owners = [(row[0], row[1]) for row in rows]
    at_least = 0 if highest is None else highest + 1
    return count_partitions(owners, at_least=at_least, default=default_of("coordinator_partitions"))


def count_coordinator_partitions(run: Run, records: DataFrame) -> int:
    """The number of coordinator partitions, before `segments` can tell the highest one: by ids, and by names of files."""
    assert run.capture is not None
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN:
        return run.settings.coordinator_partitions
    numbers = [file.partition for file in run.capture.files if file.topic == TRANSACTION_STATE_TOPIC]
    count, _ = _count_partitions(records, max((number for number in numbers if number is not None), default=None))
    return count
