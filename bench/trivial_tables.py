"""The floor for an audit by Spark that writes Delta tables: a session, and 25 tables of one row. Argument: a folder."""

from __future__ import annotations

import sys

from txnlib.delta.session import delta_session

TABLES = 25


def main(folder: str) -> None:
    spark = delta_session("trivial tables")
    for number in range(TABLES):
        spark.range(number, number + 1).write.format("delta").save(f"{folder}/{number}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
