"""The version of txnlib. Runs record it, because another version may read the same bytes differently."""

from __future__ import annotations

__version__ = "0.1.0"

#: Number of the schema of the tables (`core/schema/schema_number.py`), and the property of `audit_runs` that has it.
SCHEMA_NUMBER = 5
SCHEMA_PROPERTY = "txnlib.schema"
