#!/usr/bin/env bash
# Runs a job of txnlib with Spark.
#
#   ./spark-submit.sh                           audit the sample capture in examples/quickstart
#   ./spark-submit.sh audit --input PATH... --output PATH [options] [-- spark-submit options]
#   ./spark-submit.sh JOB [options] [-- spark-submit options]
#   ./spark-submit.sh JOB --help                the job's options
#
# Jobs: audit, or its three steps one by one: ingest_dumps, reconstruct_state, report_transactions.
#
#   --master URL          cluster to run on, before SPARK_REMOTE and SPARK_MASTER
#   -- ...                all that follows goes to spark-submit, and wins over the settings here
#
# Exit codes: 0 done; 1 the job failed; 2 bad usage, configuration or no readable input; 3 --fail-on matched.
# The report goes to stdout, everything else to stderr. Relative paths start where you are.
# The first call makes .venv, with the dependencies and, where there is no Java 17 or 21, a Java (see bootstrap.sh).
#
# Environment variable    Default             Meaning
#   SPARK_MASTER          local[*]            cluster to run on
#   SPARK_REMOTE          -                   Spark Connect server to run on (sc://host:port), or local[*] for one of its own
#   TXNLIB_DRIVER_MEMORY  2g                  heap of the driver; with a local master, the heap of everything
#   SPARK_CONF_DIR        conf/ of this repo  folder of log4j2.properties, spark-env.sh, hive-site.xml
#   PYSPARK_PYTHON        .venv/bin/python    Python of the executors; taken only with a master that is not local
#   SPARK_LOCAL_IP        127.0.0.1           address to bind to; set only with a local master
#   TXNLIB_PYTHON, TXNLIB_DELTA_JARS, JAVA_HOME and the proxies: see bootstrap.sh

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
jobs=(audit ingest_dumps reconstruct_state report_transactions)

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

bad_usage() {
  printf 'txnlib: %s\nJobs: %s\nSee %s --help\n' "$1" "${jobs[*]}" "$0" >&2
  exit 2
}

# ---- What is asked for?

if (($# == 0)); then
  set -- audit --input "$root/examples/quickstart/brokers" --output "$root/out/quickstart"
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
master="${remote:-${SPARK_MASTER:-local[*]}}"
options=()
while (($#)) && [[ "$1" != -- ]]; do
  case "$1" in
    --master)
      (($# > 1)) || bad_usage "--master needs a value"
      master="$2" remote=""
      shift
      ;;
    --master=*) master="${1#*=}" remote="" ;;
    *) options+=("$1") ;;
  esac
  shift
done
(($# == 0)) || shift  # the lone --
[[ "$remote" != sc://* ]] || (($# == 0)) || bad_usage "SPARK_REMOTE names a server, which has its settings: nothing may follow --"

# ---- What does it need?

workers_python="${PYSPARK_PYTHON:-}"
# shellcheck source=bootstrap.sh
source "$root/bootstrap.sh" run

case "$master" in
  local*) export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}" ;;         # nobody else has to reach this driver
  *) export PYSPARK_PYTHON="${workers_python:-$PYSPARK_PYTHON}" ;;  # other machines have their own
esac
export SPARK_CONF_DIR="${SPARK_CONF_DIR:-$root/conf}"
# Spark starts one Java only to compose the command of the next: without the optimising compiler, in a third less time.
export SPARK_LAUNCHER_OPTS="${SPARK_LAUNCHER_OPTS:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}"

# Lists that spark-submit takes once: what is given after -- is added to ours, not put in their place.
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

# ---- The package, as executors on other machines get it

# Directories count too: their time tells of removed and renamed files.
if [[ ! -f "$root/dist/txnlib.zip" ]] ||
  [[ -n "$(find "$root/txnlib" "$root/jobs" "$root/spark-submit.sh" -name __pycache__ -prune -o -newer "$root/dist/txnlib.zip" -print)" ]]; then
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
# The same sources give the same bytes: sorted names, one date, nothing compressed. Nothing hidden, nothing compiled.
files = sorted(path for package in ("txnlib", "jobs") for path in (root / package).rglob("*") if path.is_file())
with ZipFile(partial, "w") as archive:
    folders = set()
    for file in files:
        name = file.relative_to(root)
        if "__pycache__" in name.parts or any(part.startswith(".") for part in name.parts):
            continue
        for folder in sorted(set(name.parents) - folders - {Path()}):  # Python finds a package without __init__.py by its entry
            archive.writestr(ZipInfo(f"{folder.as_posix()}/"), b"")
            folders.add(folder)
        entry = ZipInfo(name.as_posix())
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, file.read_bytes())
os.utime(partial, (started, started))  # a source saved while we were reading is newer, and so is seen next time
partial.replace(target)  # whole or not at all, for whoever starts at the same time
PY
fi

# A small audit is over before an optimising compiler pays: see the measurements in conf/spark-defaults.conf.
inputs=()
for ((i = 0; i < ${#options[@]}; i++)); do
  case "${options[i]}" in
    --input) inputs+=("${options[i + 1]:-}") ;;
    --input=*) inputs+=("${options[i]#*=}") ;;
  esac
done
light=()
if ((${#inputs[@]})) && kib="$(du -sck -- "${inputs[@]}" 2>/dev/null | tail -n 1 | cut -f 1)" && ((kib < 65536)); then
  java_options="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:+DisplayVMOutputToStderr"
  light=(--conf "spark.driver.extraJavaOptions=$java_options")
fi

# On a terminal, how many tasks of each stage are done; in a file, the bar would be noise.
progress=()
if [[ -t 2 ]]; then
  progress=(--conf spark.ui.showConsoleProgress=true)
fi

submit_args=(
  --master "$master"
  --driver-memory "${TXNLIB_DRIVER_MEMORY:-2g}"
  --properties-file "$root/conf/spark-defaults.conf"
  --py-files "$py_files"
  --jars "$jars"
  ${light[@]+"${light[@]}"}
  ${progress[@]+"${progress[@]}"}
  ${spark_options[@]+"${spark_options[@]}"}
)

# PySpark asks the variable itself, and the classic launcher refuses to start beside it.
if [[ -n "$remote" ]]; then export TXNLIB_PY_FILES="$py_files"; else unset SPARK_REMOTE; fi

# A driver that runs elsewhere is spark-submit's to start.
if [[ " ${spark_options[*]-} " =~ " --deploy-mode"[\ =]"cluster " ]]; then
  exec "$VENV/bin/spark-submit" "${submit_args[@]}" "$root/jobs/$job.py" ${options[@]+"${options[@]}"}
fi
# One that runs here is started as a plain program: spark-submit would pour its stderr into its stdout.
# PySpark splits the variable as a POSIX shell does.
PYSPARK_SUBMIT_ARGS=""
# shellcheck disable=SC2089  # the quotes are meant for that reader
for argument in "${submit_args[@]}" pyspark-shell; do
  PYSPARK_SUBMIT_ARGS+="'${argument//\'/\'\\\'\'}' "
done
# shellcheck disable=SC2090
export PYSPARK_SUBMIT_ARGS PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$VENV/bin/python" "$root/jobs/$job.py" ${options[@]+"${options[@]}"}
