"""Every transform returns its table."""

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import get_origin, get_type_hints

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from tests.support.frames import assert_rows, empty, shape
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.readers.typed_rows import arrow_rows
from txnlib.spark.coordinators.coordinator_states import CURRENT_COPIES
from txnlib.spark.schemas import TABLES, conform

#: Modules with functions that make a table.
MODULES = (
    "producers.producer_spans", "producers.checked_batches",
    "coordinators.coordinator_states", "coordinators.transactional_ids", "coordinators.transactions",
    "tables.open_transactions", "tables.transaction_outcomes",
)  # fmt: skip
#: Table -> the function of its name.
TRANSFORMS = {
    name: function
    for module in MODULES
    for name, function in vars(import_module(f"txnlib.spark.{module}")).items()
    if name in TABLES
}
SETTINGS = {
    "as_of_ms": 0, "producer_id_expiration_ms": 86_400_000, "transaction_max_timeout_ms": 900_000,
    "thresholds": Thresholds(as_of_ms=0), "kafka_version": None, "application_patterns": (),
    "transaction_version": None,
    "coordinator_partitions_basis": "GIVEN", "is_metadata_confirmed": True, "hides_elections": False,
    "whole_metadata_ms": 0,
}  # fmt: skip
FRAMES = {
    "earlier": StructType([*TABLES["open_transactions"].fields, StructField("run_id", StringType())]),
    "earlier_coverage": StructType([*TABLES["coverage"].fields, StructField("run_id", StringType())]),
    "current_copies": CURRENT_COPIES,
    "judged_copies": StructType([*TABLES["coverage"].fields, StructField("is_whole", BooleanType())]),
    "records": TABLES["metadata_log"].simpleString(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_returns_its_table_and_nothing_from_nothing(spark, name):
    transform = TRANSFORMS[name]
    arguments = {}
    hints = get_type_hints(transform)
    for parameter in inspect.signature(transform).parameters:
        if parameter in SETTINGS:
            arguments[parameter] = SETTINGS[parameter]
        elif get_origin(hints[parameter]) is Sequence:
            arguments[parameter] = ()
        else:
            schema = FRAMES.get(parameter) or TABLES[parameter]
            arguments[parameter] = empty(spark, schema)
    actual = transform(**arguments)
    if isinstance(actual, pa.Table):  # of few rows
        assert actual.schema.equals(arrow_rows(name, ()).schema)
        assert actual.num_rows == 0
    else:
        assert shape(actual) == shape(empty(spark, TABLES[name]))
        assert_rows(actual, [])


def test_a_missing_column_is_not_filled_with_nulls(spark):
    with pytest.raises(PySparkException, match="position"):
        conform(empty(spark, "topic string, partition int, source string, path string"), TABLES["quarantine"]).collect()
