"""Rows and dataclasses of queries to text, HTML, JSON and metrics. Nothing here reads a table.

In reading order:

* `command_output`: the output of a command in each of its forms; `grid` makes tables, JSON and CSV
* `report_text`, `terminal_text`, `report_output`: the report as text, on a terminal, and as the output of a command
* `page` with `page_head`, `page_timeline`, `page_charts`: the report page
* `story_text`, `timeline_text`, `abort_plan_text`, `collect_plan_text`, `differences_text`, `coordinator_files_text`: commands
* `kafka_output` with `kafka_table`, `kafka_order`: the commands of Kafka's tool
* `summary_json`, `metrics`: a run for programs; `atomic_file` writes files

Imported one by one, so that `txn-audit` starts at once.
"""
