"""Readers that turn the files of a capture into Arrow batches.

* `capture`: which files there are; `other_files`: files that no reader knows; `storage`: disks and stores
* `log_directories`: names of folders, and meta.properties; `capture_notes`: what capture.json may say
* `table_readers`: one pass through a file, and which files are read together
* `segment`: raw segments; `batch_headers`: where valid batches follow each other; `header_columns`: their fields;
  `batch_checks`: the CRC of a batch, and what its header must be
* `batch_rows`: rows of batches; `decoded_records`, `decoded_metadata`: rows of the records in them
* `text_events`, `text_rows`: text of Kafka's tools; `printed_again`: the same dump twice
* `broker_files`: small files next to a log
* `arrow_schemas`: columns for Arrow; `typed_rows`: rows of tables as dataclasses
* `fingerprints`: what earlier audits have read
"""
