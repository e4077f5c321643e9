"""Written tables to rows and dataclasses, each query with a limit. Nothing here prints.

In reading order: `tables` and `spark_rows` open the tables of a run, `summary` is the report in rows, `story_steps` the story of
one transaction, `timeline_events` a timeline, `page_rows` the page, `collect_plan` what else to copy, `differences` two runs
compared, `run_result` what programs get. Imported one by one, so that `txn-audit` starts at once.
"""
