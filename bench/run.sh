#!/usr/bin/env bash
# Measures what docs/performance.md says: each figure beside Kafka's own tool, or another audit, in one run.
#
#   bench/run.sh                 about a quarter of an hour on two cores, 20 GB of disk meanwhile
#   bench/run.sh --only sample   a minute
#   bench/run.sh --help          the options
#
# The first call brings Spark, with a Java, and Kafka's jars into .venv-spark. See bench/run.py.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
"$root/bootstrap.sh" local >/dev/null
# shellcheck source=bootstrap.sh
source "$root/bootstrap.sh" spark

# shellcheck source=tests/tools/jars.sh
source "$root/tests/tools/jars.sh"
fetch_kafka

PYTHONPATH="$root" exec "$VENV/bin/python" "$root/bench/run.py" "$@"
