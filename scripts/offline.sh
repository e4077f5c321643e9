#!/usr/bin/env bash
# Collects all that an installation downloads, to carry it to a machine without a network.
#
#   scripts/offline.sh local txnlib-offline      # the embedded engine, txn-audit capture and txn-audit sql
#   scripts/offline.sh spark txnlib-offline      # Spark and Delta's jars instead of the embedded engine
#
# The folder then has wheels of txnlib and of all that it needs, in the versions of constraints.txt, and the jars. Run it on a
# machine with the same operating system, processor and version of Python (TXNLIB_PYTHON): wheels are made for these. How to
# install from it: docs/operations.md#without-a-network. Variables of pip and DEFAULT_ARTIFACT_REPOSITORY name mirrors.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
case "${1:-}" in
  local) extras="local,capture,sql" ;;
  spark) extras="spark,capture,sql" ;;
  *) extras="" ;;
esac
if (($# != 2)) || [[ -z "$extras" ]]; then
  printf 'usage: %s local|spark FOLDER\n' "$0" >&2
  exit 2
fi
mkdir -p "$2"
folder="$(cd "$2" && pwd -P)"
if [[ -n "$(ls -A "$folder")" ]]; then
  printf 'txnlib: %s is not empty: name another folder, so that no older version stays in it\n' "$folder" >&2
  exit 2
fi

say() { printf 'txnlib: %s\n' "$*" >&2; }

made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
"${TXNLIB_PYTHON:-python3}" -m venv "$made/venv"
pip() { PIP_USE_PEP517=1 "$made/venv/bin/python" -m pip --disable-pip-version-check --no-input "$@" >&2; }

say "building the wheel of txnlib"
pip wheel --quiet --no-deps --wheel-dir "$folder/wheels" "$root"
own=("$folder"/wheels/txnlib-*.whl)
say "collecting wheels of all that it needs"
# setuptools builds txnlib in a clone.
pip wheel --quiet --constraint "$root/constraints.txt" --wheel-dir "$folder/wheels" "${own[0]}[$extras]" setuptools
cp "$root/constraints.txt" "$folder/"
if [[ "$1" == spark ]]; then
  (
    # shellcheck source=bootstrap.sh
    source "$root/bootstrap.sh" spark
    IFS=,
    mkdir "$folder/jars"
    # shellcheck disable=SC2086
    cp $DELTA_JARS "$folder/jars/"
  )
fi
say "$(du -sh "$folder" | cut -f1) in $folder. How to install from it: docs/operations.md#without-a-network"
