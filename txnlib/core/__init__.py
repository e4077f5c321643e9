"""The core: what Kafka writes, what it means, and what may be wrong. Standard library only.

In reading order:

* `schema`: every table, with its columns and constraints, as plain data; `rows`: its rows as dataclasses
* `kafka`: what Kafka writes, byte by byte, and the state machines of its brokers
* `text`: what Kafka's command-line tools print
* `cluster_metadata`: the tables of the cluster's own log
* `copies`, `coverage`: what a copy of a log proves
* `verdicts`: what an open transaction is, why, and whether an abort is safe
* `findings`: what can be odd in a log; `finding` says what a finding is
* `tables`: the other tables that grow with the cluster, one module each
* `application`, `ended_by`: whose a transactional id is, and who ended a transaction
* `batch_runs`: rows of batches that follow one another
* `instants`, `display`, `sql_text`, `kafka_commands`: times as clocks show them; text that is safe to print; parts of
  SQL; commands of Kafka's tools
"""
