"""What an open transaction is, why, and what to do about it.

In reading order:

* `dossier`, `coordinators`, `cluster_facts`: what is gathered, of one producer id and of the cluster;
  `in_sync`: where no coordinator can write
* `clocks`, `compared_clocks`: whose clock stamped what, and how far any two are apart; `match`: which marker is a
  decision's, as far as all histories agree
* `past`, `case`: the case of one open transaction: what is gathered, and what follows from it;
  `files_beside`: what files beside logs know of it; `evidence_records`: its records in words
* `reason`, `age`, `doubt`, `verdict`: the verdict; `capture_skew`: what happened between two copies, neither shows
* `abort_proof`, `statements`: whether an abort is safe
* `world` (it begins with the axioms), over `earlier_audits` (what these saw), `times` and `scene`; `no_commit`:
  whether some history agrees with every record, and in none a COMMIT includes the open records; `world_story`: such a
  history in words
* `cause`, `cause_rule`: why nobody ended it; `metadata_events`: what happened to its leaders since it began
* `remedy`: the command for an abort by hand, or why not; `abort_plan`: what to do, step by step
* `marker_states`: the marker of a transaction on each partition
"""
