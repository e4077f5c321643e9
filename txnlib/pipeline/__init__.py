"""An audit: request, run, and the steps that make its tables.

In reading order: `audit_request`, `run` with `instant` (as of when) and `parts` (what earlier audits have read),
`scheduler`, `tables` (the steps), `audit` (its beginning and its end). Steps need `given_rows`, `coverage` and
`inferred_settings`. `query_run` is a run as questions read it. `failure` says why a run failed; `clock` notes when.
"""
