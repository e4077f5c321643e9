"""The engine of an audit: what carries out its queries, and the Delta tables that it keeps.

In reading order:

* `engine`: what either can do; `choice`: which of the two runs, `embedded` or `spark`
* `embedded`: the embedded engine; `guard`: nobody else reaches its port, by `held_calls`; `memory`: how much it may
  take
* `spark_session`: a session of Spark for an audit, beside the one that is there
* `store`: the rows of a run in its tables; also those of an older schema, and the SQL views of a catalog
* `tables`, `delta_rs`, `spark_tables`: how each engine keeps them
* `pool_source`: the rows of a capture that processes read (`file_pool`), for the embedded engine
* `retention`: old runs
"""
