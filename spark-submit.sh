#!/usr/bin/env bash
# Runs a job of txnlib: on the embedded engine, or on Spark if you name it.
#
#   ./spark-submit.sh [--master URL]            audit the sample capture in examples/quickstart
#   ./spark-submit.sh audit --input PATH... --output PATH [options] [-- spark-submit options]
#   ./spark-submit.sh JOB [options] [-- spark-submit options]
#   ./spark-submit.sh JOB --help                print the options of a job
#
# Jobs: audit, or its three stages one by one: ingest_dumps, reconstruct_state, report_transactions.
#
# What follows names Spark; so do --engine spark, --schema, SPARK_MASTER and SPARK_REMOTE:
#   --master URL          Cluster to run on; 'local[*]' is this machine. Overrides SPARK_REMOTE and SPARK_MASTER
#   -- ...                Pass all further options to spark-submit. They override the settings here
#
# Exit codes: 0 done; 1 the job failed; 2 bad usage, configuration or no readable input; 3 --fail-on matched.
# The report goes to stdout, everything else to stderr. Relative paths are relative to the current folder.
# The first call creates .venv with the dependencies; the first for Spark .venv-spark and, if no suitable Java is found, a Java
# (see bootstrap.sh).
#
# Environment variable    Default             Meaning
#   SPARK_MASTER          -                   Cluster to run on, or local[*]: Spark on this machine
#   SPARK_REMOTE          -                   Spark Connect server to run on (sc://host:port), or local[*] to start one
#   SPARK_CONF_DIR        conf/ of this repo  Folder of log4j2.properties, spark-env.sh, hive-site.xml
#   PYSPARK_PYTHON        .venv-spark's       Python of the executors. Ignored with a local master
#   SPARK_LOCAL_IP        127.0.0.1           Address to bind to. The default applies only to a local master
#   TXNLIB_PYTHON, TXNLIB_DELTA_JARS, JAVA_HOME and the proxies: see bootstrap.sh

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
jobs=(audit ingest_dumps reconstruct_state report_transactions)

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

bad_usage() {
  printf 'txnlib: %s\nJobs: %s\nSee %s --help\n' "$1" "${jobs[*]}" "$0" >&2
  exit 2
}

# ---- Command line

if [[ "${1:---master}" == --master* ]]; then
  set -- audit --input "$root/examples/quickstart/brokers" --output "$root/out/quickstart" "$@"
fi

job="$1"
shift
case "$job" in
  -h | --help)
    usage
    exit 0
    ;;
  -*) bad_usage "expected the name of a job before $job" ;;
esac
[[ " ${jobs[*]} " == *" $job "* ]] || bad_usage "unknown job: $job"

remote="${SPARK_REMOTE:-}"
master="${remote:-${SPARK_MASTER:-}}"
engine="" named=""
options=()
while (($#)) && [[ "$1" != -- ]]; do
  case "$1" in
    --master)
      (($# > 1)) || bad_usage "--master needs a value"
      named="$2"
      shift
      ;;
    --master=*) named="${1#*=}" ;;
    *)
      options+=("$1")
      case "$1" in
        --engine) engine="${2:-}" ;;
        --engine=*) engine="${1#*=}" ;;
        --schema | --schema=*) engine="${engine:-spark}" ;;
      esac
      ;;
  esac
  shift
done
[[ -z "$named" ]] || master="$named" remote=""
(($# == 0)) || shift  # the lone --
[[ "$remote" != sc://* ]] || (($# == 0)) || bad_usage "SPARK_REMOTE names a server with its own settings: options after -- are not allowed"
[[ "$engine" != embedded || -z "$named$*" ]] || bad_usage "--engine embedded takes no --master and no options after --"

# ---- Requirements

[[ -n "$engine" || -z "$master$*" ]] || engine=spark
if [[ "$engine" != spark ]]; then
  # shellcheck source=bootstrap.sh
  source "$root/bootstrap.sh" local
  export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
  exec "$VENV/bin/python" "$root/jobs/$job.py" ${options[@]+"${options[@]}"}
fi
workers_python="${PYSPARK_PYTHON:-}"
# shellcheck source=bootstrap.sh
source "$root/bootstrap.sh" spark
master="${master:-local[*]}"
case "$master" in
  local*) export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}" ;;         # no other machine connects to this driver
  *) export PYSPARK_PYTHON="${workers_python:-$PYSPARK_PYTHON}" ;;  # other machines have their own Python
esac
export SPARK_CONF_DIR="${SPARK_CONF_DIR:-$root/conf}"
# Spark starts one Java only to build the command line of the next. Without the optimising compiler, it takes a third less time.
export SPARK_LAUNCHER_OPTS="${SPARK_LAUNCHER_OPTS:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}"

# spark-submit takes these lists only once, so values after -- are added to ours instead of replacing them.
jars="$DELTA_JARS"
py_files="$root/dist/txnlib.zip"
spark_options=()
while (($#)); do
  case "$1" in
    --jars) jars+=",${2:-}" && shift ;;
    --jars=*) jars+=",${1#*=}" ;;
    --py-files) py_files+=",${2:-}" && shift ;;
    --py-files=*) py_files+=",${1#*=}" ;;
    *) spark_options+=("$1") ;;
  esac
  (($# == 0)) || shift
done

# ---- The package, for executors on other machines

# Directories count, too: their time changes when files are removed or renamed.
if [[ ! -f "$root/dist/txnlib.zip" ]] ||
  [[ -n "$(find "$root/txnlib" "$root/spark-submit.sh" -name __pycache__ -prune -o -newer "$root/dist/txnlib.zip" -print)" ]]; then
  "$VENV/bin/python" - "$root" <<'PY'
import os
import sys
import time
from pathlib import Path
from zipfile import ZipFile, ZipInfo

root = Path(sys.argv[1])
target = root / "dist" / "txnlib.zip"
target.parent.mkdir(exist_ok=True)
partial = target.with_suffix(f".{os.getpid()}")
started = time.time()
# The same sources give the same bytes: sorted names, one date, no compression. Hidden and compiled files are left out.
files = sorted(path for path in (root / "txnlib").rglob("*") if path.is_file())
with ZipFile(partial, "w") as archive:
    folders = set()
    for file in files:
        name = file.relative_to(root)
        if "__pycache__" in name.parts or any(part.startswith(".") for part in name.parts):
            continue
        for folder in sorted(set(name.parents) - folders - {Path()}):  # Python finds a package without __init__.py only by its entry
            archive.writestr(ZipInfo(f"{folder.as_posix()}/"), b"")
            folders.add(folder)
        entry = ZipInfo(name.as_posix())
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, file.read_bytes())
os.utime(partial, (started, started))  # a source saved during the build is newer, so the next call builds again
partial.replace(target)  # atomic, because another job may be starting
PY
fi

# Show a progress bar only on a terminal.
progress=()
if [[ -t 2 ]]; then
  progress=(--conf spark.ui.showConsoleProgress=true)
fi

submit_args=(
  --master "$master"
  --properties-file "$root/conf/spark-defaults.conf"
  --py-files "$py_files"
  --jars "$jars"
  ${progress[@]+"${progress[@]}"}
  ${spark_options[@]+"${spark_options[@]}"}
)

# PySpark reads SPARK_REMOTE itself, and the classic launcher refuses to start if it is set.
if [[ -n "$remote" ]]; then export TXNLIB_PY_FILES="$py_files"; else unset SPARK_REMOTE; fi

# spark-submit starts a driver that runs on the cluster.
if [[ " ${spark_options[*]-} " =~ " --deploy-mode"[\ =]"cluster " ]]; then
  exec "$VENV/bin/spark-submit" "${submit_args[@]}" "$root/jobs/$job.py" ${options[@]+"${options[@]}"}
fi
# A driver on this machine is started as a plain program, because spark-submit would redirect its stderr to stdout.
# PySpark splits the variable as a POSIX shell does.
PYSPARK_SUBMIT_ARGS=""
# shellcheck disable=SC2089  # the quotes are for PySpark
for argument in "${submit_args[@]}" pyspark-shell; do
  PYSPARK_SUBMIT_ARGS+="'${argument//\'/\'\\\'\'}' "
done
# shellcheck disable=SC2090
export PYSPARK_SUBMIT_ARGS PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$VENV/bin/python" "$root/jobs/$job.py" ${options[@]+"${options[@]}"}
