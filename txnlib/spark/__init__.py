"""DataFrame to DataFrame: the tables of an audit as transforms. A transform has the name of its table.

In reading order:

* `schemas`, `windows`, `core_udfs`: the columns of every table, every window, and the core inside Spark
* `capture_source`: the rows of a capture
* `metadata_log`: which records of the cluster's own log count
* `producers`: the partitions' side
* `coordinators`: the coordinators' side
* `tables`: what is open, and how each transaction ended on each partition

All of these use `joins` (queries), `core_rows` and `frames` (rows of the driver), `python_tasks`.
"""
