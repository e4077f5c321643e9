"""The core: what Kafka writes, what it means, and what may be wrong. Standard library only.

In reading order:

* `schema`: every table, with its columns and constraints, as plain data
* `kafka`: what Kafka writes, byte by byte, and the state machines of its brokers
* `verdicts`: what an open transaction is, why, and what to do about it
* `findings`: what can be odd in a log; `finding_catalogue` lists it
* `metadata`: the tables of the cluster's own log
* `text`: what Kafka's command-line tools print
* `broker_logs`: what brokers log about causes and findings
* `instants`, `durations`, `readable`: times as clocks show them, and in words; text that is safe to print
"""
