"""What Kafka writes, and the state that its brokers derive from it.

`wire` types and messages as tables of fields · `constants` special values · `record_batch` headers and records ·
`producer_state` a partition's producers, batch by batch · `marker_acceptance` which markers it accepts ·
`transaction_state` states and steps · `transaction_log` a coordinator's record · `coordinator` its steps ·
`coordinator_partition` which partition owns an id · `metadata_records` the controller's records ·
`broker_files` files next to a log · `properties` Java's format of settings · `topics` which names they may have.
"""
