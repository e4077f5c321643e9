"""Captures over the wire, by a client that only reads.

Needs the extra `capture`.
A Fetch response contains the batches of a partition as they lie in its segments, control batches included. What is
written here is an ordinary capture: an audit reads it like a copy of the brokers' disks.

`client_properties` Kafka's client.properties · `client` requests and answers and why a broker does not answer ·
`cluster` what brokers say about the cluster and its partitions · `fetch` one partition's batches, on disk ·
`partition_copy` its whole copy · `capture_folder` the other files of a capture · `capture` all of it.
"""
