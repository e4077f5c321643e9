"""What can be odd in a log. A module has findings with their sentences, and their rules.

About what partitions show: `producer_findings`, `marker_findings`, `transaction_findings`, `copy_findings`,
`transaction_index_findings`. About coordinators and the cluster: `coordinator_findings`, `abandoned_id_findings`,
`metadata_findings`, `live_answer_findings` (logs that disagree with brokers' answers). `rule` says what a rule is;
`catalogue` lists all findings and rules.
"""
