"""Rows and dataclasses to text, HTML, JSON and metrics. Nothing here reads a table.

In reading order: `report_text` and `styled_text` (the report), `story_text`, `page` with its parts, `grid` and `kafka_table`
(tables), `summary_json`, `metrics`, `atomic_file`. Imported one by one, so that `txn-audit` starts at once.
"""
