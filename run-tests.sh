#!/usr/bin/env bash
# Everything that CI runs: lint, format, types, tests. Stops at the first that fails, with a code other than 0.
#
#   ./run-tests.sh                    all that CI runs
#   ./run-tests.sh slow               what CI has no time for: most audits of captures, clusters, a real broker, kills
#   ./run-tests.sh -k windows tests/spark     arguments go to pytest
#
# The first call makes .venv (see bootstrap.sh).

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=bootstrap.sh
source ./bootstrap.sh test
if [[ "${1:-}" == slow ]]; then
  bootstrap_kafka                         # for the tests of scripts/capture.sh: a broker, from Maven
  bootstrap_hadoop                        # for those of hdfs://: a cluster of one machine, from Maven
fi

export TXNLIB_DELTA_JARS="$DELTA_JARS"    # for the tests' session: spark.jars
export SPARK_LOCAL_IP=127.0.0.1           # else Spark warns about the machine's name
export SPARK_CONF_DIR="$PWD/conf"         # quiet logs and the settings of a run

step() {
  printf '== %s\n' "$*" >&2
  "$VENV/bin/$1" "${@:2}"
}

step ruff check .
step ruff format --check .
step mypy
step shellcheck --external-sources ./*.sh bench/*.sh scripts/*.sh
printf '== pytest\n' >&2
[[ "${1:-}" != slow ]] || set -- -m slow "${@:2}"
(($# == 0)) || exec "$VENV/bin/pytest" "$@"   # its code is ours; no tests found is 5

# What shares the first Spark session in one process, everything else beside it: a core each.
beside="$(mktemp)"
trap 'rm -f "$beside"' EXIT
"$VENV/bin/pytest" -m "not session and not slow" >"$beside" 2>&1 &
"$VENV/bin/pytest" -m "session and not slow" && code=0 || code=$?
wait $! || code=$?
printf '== pytest beside the Spark session\n' >&2
cat "$beside"
exit "$code"
