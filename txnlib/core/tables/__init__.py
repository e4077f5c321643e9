"""Tables that grow with the cluster, made of typed rows. A function has the name of its table, and mostly its module,
too.

What to do: `abort_plan`, `marker_repairs` (stuck transactions), `in_doubt_transactions`. What is affected:
`partitions`, `brokers`, `blocked_groups`. Besides: `broker_clocks`, and `ended_transactions` since the last audit.
"""
