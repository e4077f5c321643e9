"""What people ask of an audit, one room for each question: its query, its answer as rows or a dataclass, and its text.

`main` runs a command of `txn-audit`, `commands` lists them. Each question has a function `answer`, or one for each
command:

* `report`: the report as data, and its answer; `report_rows`, `page_rows` and `extents` read it. `report_sections` has
  what follows, with `entries` of open transactions and `report_fields` for programs; `terminal_report` and `run_result`
  write text and JSON, txnlib/page the page, in `words` that other answers share. `stuck_ids` hold no partition, commits
  of groups are in `pending_commits`
* `story`: what logs show in order of time, of a partition or an id; `explain`: of one open transaction; `transaction`:
  of one transaction on all partitions; `events` and `partition_events` put events in their order, `story_text`,
  `transaction_text` and `picture` show stories; `explain_command` answers about topics and stuck ids, too
* `abort_plan_text`, `abort_script`, `collect_plan`: what to do, and what else to copy
* `overviews`, `diff`, `sql`, `acknowledgements`: tables in fewer columns, two runs, any query, what is known;
  `nights`: audits over time
* `kafka_transactions` with `kafka_table`: the commands of Kafka's tool
* `capture_command`: logs over the wire
* `run_result`: a run for programs

`subject` reads the words of a command that name a partition or an id; `own_command` prints commands that can be pasted
anywhere.

`queries` is what a query asks for; `delta_rows` opens the tables, and `arrow_tables` gives them to programs.
`command_output` is an answer in each of its forms, and the files that it writes; `grid` makes tables, JSON and CSV.
What reads tables makes no text. Modules are imported one by one, so that `txn-audit` starts at once.
"""
