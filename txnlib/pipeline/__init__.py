"""An audit: request, run, and the steps that make its tables.

In reading order: `audit_request`, `run`, `scheduler`, `tables` (the steps), `audit` (its beginning and its end), `run_lock`.
"""
