"""Rules of findings: from typed rows to rows of `findings`.

About what partitions show: `producer_findings`, `marker_findings`, `transaction_findings`, `copy_findings`,
`transaction_index_findings`. About coordinators and the cluster: `coordinator_findings`, `abandoned_id_findings`,
`metadata_findings`, `live_answer_findings` (logs that disagree with brokers' answers). `finding_row` makes a row;
`catalogue` lists all findings.
"""
