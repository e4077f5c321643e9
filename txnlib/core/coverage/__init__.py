"""What each copy of a partition contains and proves.

One row per copy, made of few facts about each file. `core.copies` has the rules; the modules here find what they ask
for: `captured_files` the files of a copy · `capture_instants` when each was copied · `leaders` who leads ·
`truncated_tails` what newer leaders truncated · `copy_facts` one copy · `judged_copy` which copy is judged ·
`coverage` the rows · `quarantine` what could not be read · `unread` what to say of that · `known_metadata` what the
metadata log proves.
Source: docs/rules/copies.md#current-copies, docs/rules/copies.md#truncated-tails.
"""
