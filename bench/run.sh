#!/usr/bin/env bash
# Measures the audit and each of its stages next to numpy's floor: bench/run.sh [--batches N] [--batch-bytes N] (see bench/run.py).

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# shellcheck source=bootstrap.sh
source "$root/bootstrap.sh" run
export SPARK_CONF_DIR="${SPARK_CONF_DIR:-$root/conf}"
export PYSPARK_SUBMIT_ARGS="--master local[*] --driver-memory ${TXNLIB_DRIVER_MEMORY:-2g} --properties-file $root/conf/spark-defaults.conf --jars $DELTA_JARS pyspark-shell"
exec "$VENV/bin/python" "$root/bench/run.py" "$@"
