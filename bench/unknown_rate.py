"""The price of caution: how often an audit of a whole, and of a partial, capture says UNKNOWN, and how often it is
wrong.

    source bootstrap.sh test && TXNLIB_DELTA_JARS="$DELTA_JARS" "$VENV/bin/python" bench/unknown_rate.py --histories 10

Histories and captures are those of tests/jobs/test_random_captures.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.jobs.test_random_captures import VERSIONS, alarms
from tests.support.random_history import partial_capture, random_history, whole_capture
from txnlib.engine.spark import delta_session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10, help="Random histories to capture, each whole and in part")
    histories = parser.parse_args().histories
    spark = delta_session("caution")
    counts = {"whole": Counter[str](), "partial": Counter[str]()}
    for seed in range(100, 100 + histories):
        for kind, counted in counts.items():
            random, is_v2 = Random(seed), seed % 2 == 0
            history = random_history(random, is_v2=is_v2)
            notes = {"kafka_version": VERSIONS[is_v2], "transaction_version": 2 if is_v2 else 0}
            with TemporaryDirectory() as folder:
                place = Path(folder) / "brokers"
                if kind == "whole":
                    whole_capture(history, place, **notes)
                else:
                    partial_capture(random, history, place, **notes)
                wrong, rows = alarms(spark, place, history)
            counted.update(row["verdict"] for row in rows)
            counted["safe"] += sum(bool(row["safe_to_abort"]) for row in rows)
            counted["wrong"] += len(wrong)
            counted["open"] += len(rows)
    columns = ("open", "HANGING", "SUSPECT", "STUCK", "LATE", "OPEN", "UNKNOWN", "safe", "wrong")
    print("| captures | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for kind, counted in counts.items():
        print(f"| {kind} | " + " | ".join(str(counted[name]) for name in columns) + " |")


if __name__ == "__main__":
    main()
