"""How thorough are the laws? The same examples in every run, and no database of them on disk.

`--hypothesis-profile=exhaustive` looks further, with new examples each time.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, database=None, max_examples=60, deadline=None)
settings.register_profile("exhaustive", database=None, max_examples=5_000, deadline=None)
settings.load_profile("deterministic")
