"""Settings of a session whose steps run side by side."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException
from txnlib.delta.tuning import CODEGEN, Plans, Tuning

from txnlib.spark.frames import setting


class Settings(dict):
    """The settings of a session, without one."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


@pytest.fixture
def settings() -> Settings:
    return Settings({"spark.sql.shuffle.partitions": "8"})


@pytest.fixture
def tuning(settings) -> Tuning:
    return Tuning(SimpleNamespace(conf=settings))


def test_a_step_gets_its_settings_and_those_of_the_session_for_the_rest(settings, tuning):
    with tuning.of(Plans.SMALL):
        assert (settings[CODEGEN], settings["spark.sql.shuffle.partitions"]) == ("NO_CODEGEN", "1")
    with tuning.of(Plans.MANY_ROWS):
        assert (settings[CODEGEN], settings["spark.sql.shuffle.partitions"]) == ("FALLBACK", "8")
        assert "spark.sql.leafNodeDefaultParallelism" not in settings


def test_steps_with_the_same_settings_run_together_and_others_wait_in_order(settings, tuning):
    both, ended = threading.Barrier(3), []
    release = threading.Event()

    def step(name: str, plans: Plans, *, meets: bool = False) -> None:
        with tuning.of(plans):
            if meets:
                both.wait(10)
                release.wait(10)
            ended.append((name, settings[CODEGEN]))

    with ThreadPoolExecutor(4) as workers:
        workers.submit(step, "first", Plans.FEW_ROWS, meets=True)
        workers.submit(step, "second", Plans.FEW_ROWS, meets=True)
        both.wait(10)  # both run
        for name, plans in (("many", Plans.MANY_ROWS), ("late", Plans.FEW_ROWS)):
            workers.submit(step, name, plans)
            _wait_for_place(tuning)
        assert ended == []
        release.set()
    assert [name for name, _ in ended][2:] == ["many", "late"]
    assert dict(ended)["many"] == "FALLBACK"
    assert dict(ended)["late"] == dict(ended)["first"] == "NO_CODEGEN"


def _wait_for_place(tuning: Tuning) -> None:
    """Returns when one more step waits."""
    known = getattr(_wait_for_place, "known", 0)
    while len(tuning._waiting) <= known:
        threading.Event().wait(0.01)
    _wait_for_place.known = known + 1


def test_a_server_that_tells_and_takes_no_setting_is_left_alone():
    def refuse(*_: object) -> None:
        raise PySparkException("CONFIG_NOT_AVAILABLE")

    refusing = SimpleNamespace(get=refuse, set=refuse, unset=refuse)
    with Tuning(SimpleNamespace(conf=refusing)).of(Plans.SMALL):
        assert setting(SimpleNamespace(conf=refusing), CODEGEN) is None
