"""What does a task in Python cost beside its work? Less, once its worker no longer looks through its libraries for garbage."""

from __future__ import annotations

import gc
from functools import lru_cache


@lru_cache
def begin_task() -> None:
    """Keeps what a worker has loaded out of garbage collection; does nothing from its second task on.

    Spark collects after each task (`pyspark.daemon`), which with numpy, pandas and pyarrow loaded takes 20 to 40 ms: more
    than most tasks of a small audit do. Nothing of a task's own exists when it begins, so nothing is kept that would
    otherwise go.
    """
    gc.freeze()
