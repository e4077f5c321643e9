"""Tables that grow with the cluster, made of typed rows. A function has the name of its table, and mostly its module,
too.

What is open: `judged_transactions`. What to do: `abort_plan`. What is affected: `partitions`, `blocked_groups`.
What has ended since the last audit: `ended_transactions`.
"""
