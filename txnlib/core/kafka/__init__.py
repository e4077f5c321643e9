"""What Kafka writes, and the state that its brokers derive from it.

`wire` types and messages as tables of fields · `constants` special values and names · `record_batch` headers and
records · `producer_state` a partition's producers, batch by batch · `marker_acceptance` which markers it accepts ·
`transaction_state` states and steps · `transaction_log` a coordinator's record · `coordinator_steps` the steps between
them · `coordinator_partition` the partition that owns an id · `metadata_records` the controller's records ·
`log_dir_files` files next to a log.
"""
