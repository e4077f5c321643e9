"""What can be odd in a log. A module has findings with their sentences, and their rules.

* `producer_findings`: batches of a producer; `copy_findings`: copies of a partition
* `marker_findings`: markers of no decision, or against one (SPLIT_OUTCOME)
* `transaction_findings`: a marker that is missing, a write that came early; `transaction_index_findings`
* `coordinator_findings`: records of coordinators; `abandoned_id_findings`: ids that nobody uses any more
* `metadata_findings`: the metadata log; `live_answer_findings`: logs that disagree with brokers' answers

`rule` says what a rule is, `catalogue` lists all findings and rules. What a broker would have refused stands with its
state machine: `core.kafka.producer_state`, `core.kafka.odd_coordinator_records`.
"""
