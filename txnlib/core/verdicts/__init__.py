"""What an open transaction is, why, and what to do about it.

In reading order:

* `dossier`, `cluster_facts`: the facts, of one producer id and of the cluster; `earlier_audits`: who saw it before
* `clocks`, `match`: whose clock stamped what, and which marker is a decision's
* `dossier_evidence`, `history`: what the facts prove; `evidence` and `evidence_records` hold it
* `reason`, `verdict`, `doubt`: the verdict
* `abort_proof`, `no_commit`, `statements`: whether an abort is safe
* `cause`: why nobody ended it
* `judged`, `abort_plan`: the rows of `open_transactions`, and the steps of `abort_plan`
* `transaction_outcome`: the marker of a transaction on each partition
"""
