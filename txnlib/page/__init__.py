"""The report as an HTML page: `report_page` fills templates, which have a macro for each section with tables.

`report_command` is the command; report_sections of txnlib/ask says what a page has.
"""
