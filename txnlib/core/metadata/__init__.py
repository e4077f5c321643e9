"""The tables of the cluster's metadata log, as functions over its records.

They take those that count, in any order. Which ones do, of several copies, is decided before (`spark.metadata_log`).
"""
