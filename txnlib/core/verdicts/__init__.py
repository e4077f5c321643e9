"""What an open transaction is, why, and what to do about it.

In reading order:

* `dossier`, `coordinators`, `cluster_facts`: what is gathered, of one producer id and of the cluster;
  `in_sync`: where no coordinator can write
* `whose_clock`: whose clock stamped what; `clock_bounds`: how far any two are apart
* `match`: which marker is a decision's, as far as all histories agree
* `earlier_audits`: which audits saw it before (first_seen, runs_seen), and what they read
* `case_facts`, `case`: one open transaction: what is gathered, and what follows from that;
  `files_beside`: what files beside logs know of it; `evidence_records`: its records in words
* `reason`, `age`, `doubt`, `verdict`: the verdict; `capture_skew`: the doubt about what happened between two copies
* `abort_proof`, `statements`: whether an abort is safe
* `world` (it begins with the axioms), over `scene` and `times`: the histories that agree with every record;
  `no_commit`: whether a COMMIT includes the open records in one of them; `world_story`: such a history in words
* `cause`, `cause_rule`: why nobody ended it; `metadata_events`: what happened to its leaders since it began
* `remedy`: the command for an abort by hand, or why not; `plan_step`: what to do, step by step
* `marker_states`: the marker of a transaction on each partition
"""
