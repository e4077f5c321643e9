"""What each copy of a partition contains and proves.

One row per copy, made of few facts about each file. `core.copies` has the row and its words; here is how each is found:

* `captured_files`: the files of a copy; `capture_instants`: when each folder was copied
* `leaders`: who leads a partition; `known_metadata`: up to when the captured metadata log tells that
* `copy_facts`: where one copy ends, by its high watermarks and checkpoints; `truncated_tails`: what newer leaders cut
* `judged_copy`: which copy is judged; `coverage`: the rows
* `quarantine`: what could not be read; `unread`: what is said of that

Source: docs/rules/copies.md#current-copies, docs/rules/copies.md#truncated-tails.
"""
