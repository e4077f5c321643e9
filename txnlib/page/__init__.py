"""The report as an HTML page: `page_rows` reads what it shows; `report_page` fills the templates.

In reading order: `report_command` (the command), `report_page`, `page_head` (the answer, navigation, the plan, and
coverage).
"""
