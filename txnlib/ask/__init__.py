"""What people ask of an audit, one room for each question: its query, its answer as rows or a dataclass, and its text.

`main` runs a command of `txn-audit`, `commands` lists them. Each question has a function `answer`, or one for each
command:

* `report`: the report as data; `report_rows` and `extents` read it, `entries` and `report_text` tell it
* `episode` with `events`: what both logs show in order of time, and its outcome; the answer of the three that follow
* `explain` with `explain_text` and `picture`: the story of one open transaction
* `transaction` with `broken_transactions`, `timeline`: one transaction on all partitions, and histories
* `abort_plan`, `collect_plan`: what to do, and what else to copy
* `overviews`, `runs`, `diff`, `sql`, `acknowledgements`: tables in fewer columns, runs, any query, what is known
* `kafka_transactions` with `kafka_table`: the commands of Kafka's tool
* `capture`, `completion`: logs over the wire, and completion in a shell
* `run_result`: a run for programs; `verdict_names`: what counts as which verdict; `atomic_file` writes files

`subject` reads the words of a command that name a partition or an id; `own_command` prints commands that can be pasted
anywhere.

`rows` is what a query asks for; `delta_rows` opens the tables, `arrow_tables` gives them to programs, and `log_rows`
reads what is in logs. `command_output` is an answer in each of its forms; `grid` makes tables, JSON and CSV. What reads
tables makes no text. Modules are imported one by one, so that `txn-audit` starts at once.
"""
