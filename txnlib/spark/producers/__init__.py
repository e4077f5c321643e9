"""The partitions' side: the state of each producer on each partition.

`producer_steps` the state before and after each batch, by windows · `producer_spans` what each producer did, marker to
marker · `producer_states` its last state · `partition_transactions` its transactions · `checked_batches` batches that
are read again.
"""
