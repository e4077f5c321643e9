"""The forecasts of the third of three nights."""

from datetime import UTC, datetime

import pytest

from tests.support.delta_tables import at, txn_audit, write, write_run
from txnlib.core.findings.forecast_findings import DAY_MS, FEW_PRODUCERS
from txnlib.delta.store import RunStore, Store
from txnlib.incremental import history_of
from txnlib.pipeline.forecasts import FORECAST
from txnlib.pipeline.run import Run
from txnlib.settings import Settings

NIGHTS = [1_795_053_600_000 + night * DAY_MS for night in range(3)]  # from 2026-11-19T02:00:00Z
WRITTEN = (
    "coordinator_states",
    "producer_spans",
    "producer_id_blocks",
    "transactions",
    "ended_transactions",
    *FORECAST.reads,
)
ODD = {"name": "COPY_OF_DELETED_TOPIC", "severity": "INFO", "message": "…", "topic": "orders", "partition": 0}


def _night(root, night):
    run_id = write_run(root, NIGHTS[night])

    def add(name, *rows):
        write(root, name, *rows, run_id=run_id)

    base = {"as_of": at(NIGHTS[night]), "topic": "orders", "high_watermark": 200 + night, "lag_offsets": 100 + night}
    base |= {"blocking_producer_id": 1, "blocking_transactional_id": "billing-0", "blocking_verdict": "OPEN"}
    stable = ({}, {"last_stable_offset": 100 + night}, {"blocking_verdict": "LATE"})
    add(
        "partitions",
        *[base | {"partition": n, "last_stable_offset": 100} | changed for n, changed in enumerate(stable)],
    )
    opened = {"topic": "orders", "partition": 0, "producer_id": 1, "start_offset": 100, "transactional_id": "billing-0"}
    add("open_transactions", opened | {"verdict": "OPEN", "is_two_phase_commit": True})
    used = {
        "transactional_id": "billing-0",
        "coordinator_partition": 4,
        "producer_id": 1,
        "state": "Ongoing",
        "record_offset": 9,
    }
    add("transactional_ids", used | {"producer_epoch": 30_760 + 120 * night, "last_update": at(NIGHTS[night])})
    copy = {
        "topic": "orders",
        "partition": 0,
        "source": "raw:1",
        "broker": "1",
        "status": "COMPLETE",
        "is_judged": True,
    }
    add("coverage", copy)
    producer = {"topic": "orders", "partition": 0}
    kept = (0, 500, FEW_PRODUCERS + 2_000)[night]
    add("producer_states", *[producer | {"producer_id": number} for number in range(kept)])
    add("findings", ODD)
    for name in WRITTEN:
        if not (root / name).exists():
            write(root, name)
    return run_id


def _run(spark, root):
    settings = Settings(cluster="test", as_of_ms=NIGHTS[2], as_of_basis="given")
    store = Store(spark, str(root), is_small=True)
    tables = RunStore(store, "test", settings.run_id)
    return Run(spark, tables, settings, datetime.now(UTC), history=history_of(store, "test"))


def _forecast(spark, root):
    run = _run(spark, root)
    FORECAST.decide(run)
    rows = run.tables.read("findings").collect()
    return {row["name"]: row for row in rows}, len(rows)


@pytest.fixture(scope="module")
def three_nights(tmp_path_factory):
    root = tmp_path_factory.mktemp("nights")
    for night in range(3):
        _night(root, night)
    # What failed, or is of another cluster, is no earlier night.
    blocked = {
        "topic": "orders",
        "partition": 0,
        "last_stable_offset": 100,
        "high_watermark": 200,
        "as_of": at(NIGHTS[0] - DAY_MS),
    }
    for told in ({"status": "FAILED"}, {"cluster": "other"}):
        write(root, "partitions", blocked, run_id=write_run(root, NIGHTS[0] - DAY_MS, **told))
    return root


@pytest.fixture(scope="module")
def forecast(spark, three_nights):
    return _forecast(spark, three_nights)


def test_the_third_night_forecasts(forecast, three_nights):
    found, count = forecast
    shown = {name: (row["severity"], row["expected"] and f"{row['expected']:%m-%d}") for name, row in found.items()}
    assert count == 4
    assert shown == {
        "COPY_OF_DELETED_TOPIC": ("INFO", None),
        "LAST_STABLE_OFFSET_STANDS_STILL": ("WARNING", None),
        "PRODUCER_EPOCHS_RUN_OUT": ("INFO", "12-05"),
        "PRODUCER_IDS_FILL_MEMORY": ("INFO", "02-14"),
    }
    assert found["PRODUCER_EPOCHS_RUN_OUT"]["evidence"] == (
        "epoch 31,000 of 32,766, 120 epochs a day since 2026-11-19T02:00:00Z: exhausted about 2026-12-05"
    )
    assert found["LAST_STABLE_OFFSET_STANDS_STILL"]["partition"] == 0
    assert "100 in 3 audits since 2026-11-19T02:00:00Z (2 d)" in found["LAST_STABLE_OFFSET_STANDS_STILL"]["evidence"]
    code, printed, error = txn_audit(three_nights, "findings", "--severity", "INFO", "--run", f"test-{NIGHTS[2]}")
    assert (code, error) == (0, "")
    assert "2026-12-05" in printed


def test_forecasts_again_replace_those_before(spark, three_nights, forecast):
    assert _forecast(spark, three_nights) == forecast


def test_what_is_no_longer_expected_goes(spark, tmp_path):
    run_id = _night(tmp_path, 0)
    write(tmp_path, "findings", {"name": "PRODUCER_EPOCHS_RUN_OUT", "severity": "INFO"}, run_id=f"test-{NIGHTS[2]}")
    write(tmp_path, "findings", ODD, run_id=f"test-{NIGHTS[2]}")
    found, count = _forecast(spark, tmp_path)
    assert (list(found), count, run_id) == (["DUPLICATE_MARKER"], 1, f"test-{NIGHTS[0]}")
