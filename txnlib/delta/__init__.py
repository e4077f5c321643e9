"""Delta tables: the session, the store of runs, and views over them.

`session` · `store` the rows of runs: `local_tables` without Spark, `commits` their sizes · `retention` which runs stay
· `views` · `tuning` how a session plans.
"""

from __future__ import annotations

from txnlib.delta.session import delta_session
from txnlib.delta.store import Store, RunStore
from txnlib.delta.commits import Commit
from txnlib.delta.retention import forget_runs
from txnlib.delta.views import create_views

__all__ = ["delta_session", "Store", "RunStore", "Commit", "forget_runs", "create_views"]
