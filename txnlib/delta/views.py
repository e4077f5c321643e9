"""The views of the catalogue, in a catalog or a session of Spark."""

from __future__ import annotations

from txnlib.core.schema.views import VIEWS, named_by
from txnlib.delta.store import Store
from txnlib.spark.schemas import TABLES


def create_views(store: Store) -> None:
    """Creates the views in the catalog schema of the tables. A folder cannot contain views."""
    if store.schema is None:
        return
    for name, view in VIEWS.items():
        about = view.about.replace("'", "''")
        query = view.named(lambda table: f"{store.schema}.{table}")
        store.spark.sql(f"CREATE OR REPLACE VIEW {store.schema}.{name} COMMENT '{about}' AS {query}")


def create_temporary_views(store: Store, query: str) -> None:
    """Registers the tables and views that a query names in this session, with the rows of all runs."""
    words, views = named_by(query)
    for name in TABLES.keys() & set(words):
        store.read_all(name).createOrReplaceTempView(name)
    for name in views:
        store.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {VIEWS[name].named(str)}")
