"""The version of txnlib. Runs record it, because another version may read the same bytes differently."""

from __future__ import annotations

__version__ = "0.1.0"
