"""Readers that turn the files of a capture into Arrow batches.

`capture` which files there are · `other_files` what no reader knows · `log_directories` names of folders and
meta.properties · `capture_notes` capture.json ·
`fingerprints` what earlier audits have read ·
`table_readers` one pass through a file, and which files are read together ·
`segment` raw segments: `header_columns`, `batch_checks`, `batch_headers`, `batch_rows`, `decoded_records`,
`decoded_metadata` ·
`text_events`, `text_rows` text · `printed_again` the same dump twice ·
`broker_files` small files next to a log · `arrow_schemas` their columns ·
`typed_rows` rows of tables as dataclasses · `storage` disks and stores.
"""
