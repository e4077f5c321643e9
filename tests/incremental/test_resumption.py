"""When windows resume."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from txnlib.incremental.resumption import MIN_RESUMED_BYTES, Resumption


def resumption(resumed_bytes: int) -> SimpleNamespace:
    """A run that resumes a number of bytes. It fails if it reads a table."""
    earlier = SimpleNamespace(run=SimpleNamespace(producer_id_expiration_ms=1), tables=None)
    capture = SimpleNamespace(size=resumed_bytes, size_to_read=0)
    return SimpleNamespace(earlier=earlier, capture=capture, tables=None, appended=())


@pytest.mark.parametrize(("resumed_bytes", "expiration_ms"), [(MIN_RESUMED_BYTES - 1, 1), (MIN_RESUMED_BYTES, 2)])
def test_no_windows_resume_if_little_was_read_or_other_producers_were_forgotten(resumed_bytes, expiration_ms):
    run = resumption(resumed_bytes)
    Resumption.find_appended_partitions(run, expiration_ms)
    assert run.appended == ()


def test_windows_resume_otherwise():
    with pytest.raises(AttributeError):
        Resumption.find_appended_partitions(resumption(MIN_RESUMED_BYTES), 1)
