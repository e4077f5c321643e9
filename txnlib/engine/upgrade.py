"""Tables of an older schema: refused, or given the columns of today."""

from __future__ import annotations

from txnlib.core.schema import TABLES
from txnlib.core.schema.schema_number import is_constrained_anew, number_of
from txnlib.engine.store import Store, again_after_conflicts
from txnlib.engine.tables import AUDIT_RUNS
from txnlib.version import SCHEMA_NUMBER


def opened(store: Store) -> Store:
    """The store, whose tables have all columns. What was added since is NULL in the rows that are there.

    Raises OtherSchemaError for tables that this version cannot read.
    """
    tables = store.tables
    if not store.exists(AUDIT_RUNS):
        return store
    number = number_of(
        str(store.output or store.schema),
        tables.noted_number(),
        lambda: {name: tables.shape(name) for name in TABLES if store.exists(name)},
    )
    if number < SCHEMA_NUMBER:
        for name in TABLES:
            if store.exists(name):
                again_after_conflicts(tables.extend)(name, is_constrained_anew=is_constrained_anew(name, number))
        # Last, so that an upgrade that was killed is made again.
        again_after_conflicts(tables.note_number)()
    return store
