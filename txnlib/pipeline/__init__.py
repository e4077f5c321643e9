"""An audit: request, run, and the steps that make its tables.

In reading order: `audit_request`, `run` (as of when) with `parts` (what earlier audits have read),
`scheduler`, `tables` (the steps), `audit` (its beginning and its end, and how questions read
it). Steps need `given_rows`, `coverage` and
`inferred_settings`. `failure` says why a run failed; `clock` notes when.
"""
