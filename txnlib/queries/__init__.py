"""Tables to rows and frozen dataclasses, one query for each command or file. Nothing here prints.

In reading order:

* `rows`: what a query asks for; `tables` and `spark_rows` open the tables of a run
* `summary` is the report, `page_rows` the report page, `run_result` what programs get
* `story` is the story of one open transaction; `story_steps` and `story_order` put its records in order
* `timeline` is the history of a partition or of an id; `timeline_events` puts its events in order
* `transactional_ids` with `kafka_filters`, `producers`, `hanging_search`: the commands of Kafka's tool
* `abort_plan`, `collect_plan` with `needed_copies`, `overviews`, `differences`, `coordinator_files`: the other commands

Imported one by one, so that `txn-audit` starts at once.
"""
