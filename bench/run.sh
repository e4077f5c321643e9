#!/usr/bin/env bash
# Measures what txnlib is held to, in one run: against numpy, Kafka's own tool and Polars, on one core and on two.
#
#   bench/run.sh                 about half an hour on two cores, 30 GB of disk meanwhile
#   bench/run.sh --slopes        how costs grow (docs/performance.md): some minutes, 4 GB of disk
#   bench/run.sh --help          the options
#
# The first call brings Kafka's jars and Polars into .venv-spark. See bench/run.py.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
"$root/bootstrap.sh" local >/dev/null
# shellcheck source=bootstrap.sh
source "$root/bootstrap.sh" test    # nights in S3 need its test server

"$VENV/bin/python" -c 'import polars' 2>/dev/null || bootstrap_pip install --editable "${root}[bench]" ||
  bootstrap_die "pip could not install Polars: see above"

# shellcheck source=tests/tools/jars.sh
source "$root/tests/tools/jars.sh"
fetch_kafka
fetch_s3a

export SPARK_CONF_DIR="${SPARK_CONF_DIR:-$root/conf}" SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}" PYTHONPATH="$root"
exec "$VENV/bin/python" "$root/bench/run.py" "$@"
