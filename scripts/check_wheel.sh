#!/usr/bin/env bash
# Installs a wheel where nothing of the repository is, and audits the sample there.
#
#   scripts/check_wheel.sh dist/txnlib-0.1.0-py3-none-any.whl
#
# That is an empty environment in an empty home, in a temporary folder (2.1 GB), which is removed at the end. First come the
# commands that need no extra, then `txnlib-audit` and `txnlib.audit()` with the extra `local`, where no Java can be started, and
# in an environment of its own with the extra `spark`. It needs Python 3.11 or newer, Java 17, 21 or 25, and a network or mirrors
# (PIP_INDEX_URL, DEFAULT_ARTIFACT_REPOSITORY, …). Takes some minutes. The exit code is 1 if a step fails; what failed is printed
# before.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
if (($# != 1)) || [[ ! -f "$1" ]]; then
  printf 'usage: %s WHEEL\n' "$0" >&2
  exit 2
fi
wheel="$(realpath "$1")"
machine="$(mktemp -d)"
trap 'rm -rf "$machine"' EXIT
mkdir "$machine/home"
cp -r "$root/examples/quickstart/brokers" "$machine/capture"
cd "$machine"

# Only variables that lead through a network are kept. Java takes the home from the user database, so it is told.
kept=()
while IFS= read -r name; do kept+=("$name=${!name}"); done \
  < <(compgen -e | grep -E '^(JAVA_HOME|LANG|PIP_[A-Z_]+|DEFAULT_ARTIFACT_REPOSITORY|(https?|no)_proxy|(HTTPS?|NO)_PROXY|SSL_CERT_FILE)$')
on_machine() {
  env -i HOME="$machine/home" PATH="$machine/$environment/bin:/usr/local/bin:/usr/bin:/bin" \
    JAVA_TOOL_OPTIONS="-Duser.home=$machine/home" ${kept[@]+"${kept[@]}"} "$@"
}
step() { printf '== %s\n' "$*"; }
# All output of a command is shown if it fails.
quiet() { "$@" >"$machine/log" 2>&1 || { cat "$machine/log"; exit 1; }; }
expect() { grep -q -- "$1" "$2" || { printf 'expected %s in:\n' "$1"; cat "$2"; exit 1; }; }

python="$(command -v "${TXNLIB_PYTHON:-python3}")"
cat >ask.py <<'PY'
import sys

import txnlib

found = txnlib.audit("capture")
print(dict(found.counts))
assert found.counts == txnlib.open_audit(sys.argv[1]).counts
assert [row["topic"] for row in found.hanging.collect()] == ["payments"]
PY
# Variables given are those that name the engine.
audits() {
  step "txnlib-audit"
  quiet on_machine "$@" txnlib-audit --input capture --output "tables-$environment" --summary summary.json
  on_machine txn-audit find-hanging --tables "tables-$environment" | tee hanging
  expect "payments" hanging

  step "txnlib.audit()"
  on_machine "$@" python ask.py "tables-$environment" 2>log || { cat log; exit 1; }
}

step "pip install txnlib"
environment=local
quiet on_machine "$python" -m venv local
quiet on_machine pip install --constraint "$root/constraints.txt" "$wheel"
on_machine txn-audit --version
on_machine txn-audit locate --transactional-id payments-batch-7 --partitions 50
on_machine python -c 'import txnlib; txnlib.audit' 2>refused && exit 1
expect "pip install 'txnlib\[local\]'" refused

step "pip install txnlib[local]"
quiet on_machine pip install --constraint "$root/constraints.txt" "${wheel}[local]"
printf '#!/bin/sh\nexit 1\n' >local/bin/java
chmod +x local/bin/java
audits JAVA_HOME=/nowhere

step "pip install txnlib[spark]"
environment=spark
quiet on_machine "$python" -m venv spark
quiet on_machine pip install --constraint "$root/constraints.txt" "${wheel}[spark]"
audits SPARK_MASTER='local[*]'

step "all is well"
