"""The coordinators' side: the state of each transactional id.

`coordinator_states` every record · `transactional_ids` the last state of each id, and the ids that had each
producer id · `transactions` each transaction, with its markers by `transaction_markers` · `measured_clocks`
how far brokers' clocks differ · `clock_bounds` by which pairs of them, and since when · `console_copies` partitions of
console text.
"""
