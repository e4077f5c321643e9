#!/usr/bin/env bash
# Fetches what only tests and measurements need from Maven into .venv-spark: Kafka's brokers and tools, Hadoop's mini cluster, Spark's
# client of S3. For run-tests.sh and bench/run.sh, which source it behind bootstrap.sh.

# Fetches a Maven package and its dependencies into a folder, unless they are there, with the Ivy in Spark, as
# spark.jars.packages does. Scala and other libraries that every Spark application has are left out.
fetch_jars() {
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
    --conf "spark.jars.ivy=$ivy" --driver-java-options "$(java_network "$ivy")" "$ivy/nothing.py" >"$ivy/log" 2>&1 || true
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

# Fetches Hadoop's mini cluster, which needs JUnit, in the version of Spark's Hadoop client. Exports HADOOP_CLASS_PATH.
fetch_hadoop() {
  local client=("$SPARK_HOME"/jars/hadoop-client-api-*.jar) version
  version="${client[0]##*-api-}"
  { fetch_jars "org.apache.hadoop:hadoop-client-minicluster:${version%.jar}" "$VENV/hadoop" --exclude-packages "$(bootstrap_join , \
      'org.apache.hadoop:hadoop-client-'{api,runtime} 'com.*:*' 'io.*:*' 'jakarta.*:*' 'javax.*:*' 'org.'{b,c,e,g,h,i,j,l,o,p,r,s,x,y}'*:*')" &&
    fetch_jars "org.junit.jupiter:junit-jupiter-api:5.13.4" "$VENV/junit"; } || bootstrap_die "could not fetch the jars of Hadoop: see above"
  export HADOOP_CLASS_PATH="$VENV/hadoop/*:$VENV/junit/*:$SPARK_HOME/jars/*"
}

# Fetches the client of S3 that Spark uses (700 MB), for tests and measurements. Exports S3A_JARS.
fetch_s3a() {
  local client=("$SPARK_HOME"/jars/hadoop-client-api-*.jar) version
  version="${client[0]##*-api-}"
  fetch_jars "org.apache.hadoop:hadoop-aws:${version%.jar}" "$VENV/s3a" || bootstrap_die "could not fetch the client of S3: see above"
  S3A_JARS="$(bootstrap_join , "$VENV"/s3a/*.jar)"
  export S3A_JARS
}

# Fetches another version of Kafka's broker, for tests of captures, beside the one of fetch_kafka.
fetch_broker() {
  fetch_jars "org.apache.kafka:kafka_2.13:$1" "$VENV/kafka-$1" || bootstrap_die "could not fetch the jars of Kafka $1: see above"
}

# Fetches Kafka's broker and command-line tools, for tests and measurements. Exports KAFKA_VERSION and KAFKA_CLASS_PATH.
fetch_kafka() {
  export KAFKA_VERSION=4.1.1
  # The tools depend on Connect's runtime and a web server, which the tools used here do not need.
  { fetch_jars "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" "$VENV/kafka" &&
    fetch_jars "org.apache.kafka:kafka-tools:$KAFKA_VERSION" "$VENV/kafka-tools" --exclude-packages "$(bootstrap_join , \
      'com.*:*' 'io.*:*' 'jakarta.*:*' 'javax.*:*' 'org.apache.kafka:'{connect-,kafka-c,kafka-g,kafka-m,kafka-r,kafka-s,kafka-tr,kafka-tools-}'*' \
      'org.apache.'{commons,logging,maven}'*:*' 'org.'{b,c,e,g,h,j,l,o,p,r,s,x,y}'*:*')"; } ||
    bootstrap_die "could not fetch the jars of Kafka: see above"
  KAFKA_CLASS_PATH="$VENV/kafka/*:$VENV/kafka-tools/*:$(bootstrap_join : "$SPARK_HOME"/jars/scala-library-*.jar)"
  export KAFKA_CLASS_PATH
}

# Prints Java options that let Ivy connect wherever pip can: Java reads neither the proxy variables nor the certificates that
# this machine trusts.
java_network() {
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
