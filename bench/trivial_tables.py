"""The floor for an audit by Spark that writes Delta tables: a session, and tables of one row.

Arguments: a folder, and the number of tables.
"""

from __future__ import annotations

import sys

from txnlib.engine.spark import delta_session


def main(folder: str, tables: int) -> None:
    spark = delta_session("trivial tables")
    for number in range(tables):
        spark.range(number, number + 1).write.format("delta").save(f"{folder}/{number}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
