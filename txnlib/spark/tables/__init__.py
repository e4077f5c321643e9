"""Tables about both sides of a transaction.

`dossiers` what is known of each open transaction, with `batch_evidence` around it · `open_transactions` its judgement ·
`transaction_outcomes` how each ended on each partition.
"""
