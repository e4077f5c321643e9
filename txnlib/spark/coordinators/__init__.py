"""The coordinators' side: the state of each transactional id.

`coordinator_states` every record · `transactional_ids` the last state of each id, and the ids that had each
producer id · `transactions` each transaction, with its markers by `transaction_markers` · `measured_clocks`
an estimate of how far two clocks differ · `clock_pairs` the least and the most that each pair allows ·
`console_copies` partitions of console text.
"""
