"""What each copy of a partition contains and proves.

One row per copy, made of few facts about each file. `core.copies` has the rules; the modules here find what they ask for.
Source: docs/rules/copies.md#current-copies, docs/rules/copies.md#truncated-tails.
"""
