"""What Kafka writes, and the state that its brokers derive from it.

* `wire`: types and messages as tables of fields; `constants`: special values and names
* `record_batch`: headers and records; `log_dir_files`: files next to a log
* `producer_state`: a partition's producers, batch by batch; `marker_acceptance`: which markers it accepts
* `transaction_log`: a coordinator's record; `transaction_state`: its states, and the steps between them that are legal
* `odd_coordinator_records`: what is odd about such a record, and what excuses a step that is not legal
* `coordinator_partition`: the partition that owns an id
* `metadata_records`: the controller's records
"""
