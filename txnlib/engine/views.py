"""The views of the catalogue, in a catalog or a session of Spark."""

from __future__ import annotations

from txnlib.core.schema.views import VIEWS, named_by, no_rows
from txnlib.engine.store import Store
from txnlib.spark.schemas import TABLES


def create_views(store: Store) -> None:
    """Creates the views in the catalog schema of the tables. A folder cannot contain views.

    A later run creates them again, once tables that are not there now have rows.
    """
    if store.schema is None:
        return
    names = {name: f"{store.schema}.{name}" for name in (*TABLES, *VIEWS)}
    names |= {name: f"({no_rows(name)})" for name in TABLES if not store.exists(name)}
    for name, view in VIEWS.items():
        about = view.about.replace("'", "''")
        query = view.named(names.__getitem__)
        store.spark.sql(f"CREATE OR REPLACE VIEW {store.schema}.{name} COMMENT '{about}' AS {query}")


def create_temporary_views(store: Store, query: str) -> None:
    """Registers the tables and views that a query names in this session, with the rows of all runs."""
    words, views = named_by(query)
    for name in TABLES.keys() & set(words):
        store.read_all(name).createOrReplaceTempView(name)
    for name in views:
        store.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {VIEWS[name].named(str)}")
