"""The partitions' side: the state of each producer on each partition.

`producer_steps` the state before and after each batch, by windows · `producer_spans` what each producer did, marker to
marker, its last state and its transactions · `checked_batches` batches that are read again.
"""
