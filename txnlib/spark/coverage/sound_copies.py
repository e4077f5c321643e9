"""Copies that show what is not in a log, under their former name."""

from __future__ import annotations

from txnlib.spark.coverage.coverage import shows_absence, sound_copies

__all__ = ["shows_absence", "sound_copies"]
