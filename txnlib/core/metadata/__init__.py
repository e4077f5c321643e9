"""The tables of the cluster's metadata log, each as a function over those of its records that count.

Which records count, of several copies, is decided before (`spark.metadata.metadata_log`). The functions take them in any order.
"""
