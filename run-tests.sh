#!/usr/bin/env bash
# Runs everything that CI runs: lint, format, types, tests. Stops at the first failure, with a nonzero exit code.
#
#   ./run-tests.sh                            run what CI runs
#   ./run-tests.sh slow                       run the tests that are too slow for CI: most audits of captures, clusters, a real
#                                             broker, kills
#   ./run-tests.sh mutants                    count the changed rules of the core that its tests notice; --help shows the options
#   ./run-tests.sh -k windows tests/spark     pass arguments to pytest; --engine spark: on Spark, not on the embedded engine
#
# The first call creates .venv and .venv-spark (see bootstrap.sh).

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
./bootstrap.sh local >/dev/null           # tests run the first command of the README
# shellcheck source=bootstrap.sh
source ./bootstrap.sh test
if [[ "${1:-}" == slow ]]; then
  # shellcheck source=tests/tools/jars.sh
  source tests/tools/jars.sh
  fetch_kafka                             # a broker for the tests of scripts/capture.sh, from Maven
  for version in 3.7.2 3.9.2 4.0.1 4.2.0 4.3.1; do
    fetch_broker "$version"               # brokers of other versions for the tests of captures over the wire
  done
  fetch_hadoop                            # a one-machine cluster for the tests of hdfs://, from Maven
  fetch_s3a                               # Spark's client of S3, for nights there, from Maven
fi

[[ "${1:-}" != mutants ]] || exec "$VENV/bin/python" scripts/mutants.py "${@:2}"

export TXNLIB_DELTA_JARS="$DELTA_JARS"    # spark.jars of the test session
export SPARK_LOCAL_IP=127.0.0.1           # otherwise Spark warns about the host name
export SPARK_CONF_DIR="$PWD/conf"         # quiet logs, and the settings of a run

step() {
  printf '== %s\n' "$*" >&2
  "$VENV/bin/$1" "${@:2}"
}

step ruff check .
step ruff format --check .
step shellcheck --external-sources ./*.sh bench/*.sh scripts/*.sh tests/tools/*.sh
case "${1:-}" in
  "") set -- -m "not slow" ;;
  slow) set -- -m slow "${@:2}" ;;
  *)
    step mypy
    printf '== pytest\n' >&2
    exec "$VENV/bin/pytest" "$@"          # the exit code is that of pytest; 5 if no tests were found
    ;;
esac

# Three processes on two cores, because much of the time one waits for another program: on Spark, what needs it or holds on
# both engines; all other tests from the end; and, behind mypy, from the beginning, until no module is left. The first one
# then goes on with them.
share="$(mktemp -d)"
on_spark_and_then_from_the_end() {
  local code=0
  "$VENV/bin/pytest" --engine spark "$@" || code=$?
  "$VENV/bin/pytest" --share="$share" --from-the-end "$@" || code=$?
  return "$code"
}
set -m                                    # groups of their own: if this script is ended, all of them are
on_spark_and_then_from_the_end "$@" >"$share/spark" 2>&1 &
spark=$!
"$VENV/bin/pytest" --share="$share" --from-the-end "$@" >"$share/end" 2>&1 &
end=$!
set +m
trap 'kill -- "-$spark" "-$end" 2>/dev/null || true; rm -rf "$share"' EXIT
step mypy
printf '== pytest\n' >&2
"$VENV/bin/pytest" --share="$share" "$@" && code=0 || code=$?
wait "$end" || code=$?
printf '== pytest from the end\n' >&2
cat "$share/end"
wait "$spark" || code=$?
printf '== pytest on Spark, and from the end\n' >&2
cat "$share/spark"
exit "$code"
