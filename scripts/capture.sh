#!/usr/bin/env bash
# Captures the logs of one broker for txnlib, as files or as text, and writes capture.json.
#
#   capture.sh --output DIR --log-dirs /var/lib/kafka/data [options]
#   capture.sh --output DIR --server-properties /etc/kafka/server.properties [options]
#
# Run it on every broker, with one DIR, or with several whose contents are merged afterwards: the copy of a broker is in
# DIR/<broker id>. Coordinators (__transaction_state) are copied first, then the other partitions, then the coordinators again,
# and last the cluster's metadata log (__cluster_metadata), which contains the leaders and settings. With several brokers, wait
# until all calls have ended, then run `--step coordinators-again` on each. See docs/capture.md.
# Requires bash 4.4 and coreutils (BusyBox is enough). Only reads from the log directories. If it fails or is killed, call it
# again to resume: a copied file is copied again only if it changed, and only the new part of a segment that grew is copied.
#
# Input and output
#   --output DIR               Folder of the capture
#   --log-dirs DIR[,DIR]       Log directories of the broker
#   --server-properties FILE   Configuration of the broker: log directories, broker id and settings
#   --broker-id N              Id of the broker (default: from meta.properties in the log directory)
#   --cluster NAME             Name of the cluster (default: its id, from meta.properties)
#
# What to copy
#   --topics REGEX             Copy only topics whose whole name matches this extended regular expression, and coordinators
#   --partitions T-P[,T-P]     Copy only these partitions, as orders-0,orders-1, and coordinators
#   --since-snapshot           Of data partitions, copy only the newest .snapshot and the segments from it on:
#                              enough to see what is open, but not what ended before
#   --text                     Copy the text of kafka-dump-log.sh instead of the files (needs Kafka's tools; compressed if there is
#                              a gzip)
#   --step STEP                Run only this step: coordinators, partitions or coordinators-again. Can be given more than once
#   --link                     Make hard links instead of copies of segments that are no longer written to, if DIR is on the same
#                              file system. Takes no space and no time. Linked files may only be read or deleted
#   --limit-rate N[K|M|G]      Copy at most this many bytes per second (not with --text)
#   --dry-run                  Print what would be copied, and exit
#
# Leaders and settings, from Kafka's own tools (optional; needed without a metadata log, as with ZooKeeper)
#   --kafka-home DIR           Folder that contains bin/kafka-topics.sh, or bin/kafka-topics as Confluent Platform has it
#                              (default: where they are in PATH)
#   --bootstrap-server LIST    Brokers to connect to
#   --command-config FILE      Client properties, for a cluster with authentication
#
# Exit codes: 0 everything was copied; 1 something could not be copied or queried, call again; 2 bad usage, or nothing to copy.

set -euo pipefail
export LC_ALL=C
umask 077                             # logs contain what applications wrote: only the owner may read a copy
unset JMX_PORT KAFKA_JMX_OPTS         # set for the broker in a container; its tools would use the same port
shopt -s nullglob

readonly COORDINATOR=__transaction_state GROUPS_TOPIC=__consumer_offsets METADATA=__cluster_metadata-0
readonly TRIES=5                      # attempts per partition, if its files are replaced while they are copied
readonly COMPARED=65536               # bytes at the end of a copy that must match before it is continued
readonly LONGEST=255                  # bytes of a file name
readonly FILE='^([0-9]{20}(\.(log|snapshot|txnindex)|-[0-9]{10}\.checkpoint)|leader-epoch-checkpoint|partition\.metadata)$'
readonly TOPIC='[a-zA-Z0-9._-]+'
readonly SETTINGS=" transaction.max.timeout.ms transactional.id.expiration.ms producer.id.expiration.ms \
transaction.state.log.num.partitions transaction.abort.timed.out.transaction.cleanup.interval.ms \
transaction.remove.expired.transaction.cleanup.interval.ms transaction.partition.verification.enable \
transaction.two.phase.commit.enable log.message.timestamp.type inter.broker.protocol.version "

say() { printf 'capture: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
misused() { say "$@"; say "see --help"; exit 2; }

warn() {
  say "$@"
  PROBLEMS=$((PROBLEMS + 1))
}

# Sets NOW to the time in ms by the broker's clock, without starting a process if bash knows it.
now() {
  if [[ -n "${EPOCHREALTIME:-}" ]]; then
    NOW="${EPOCHREALTIME/./}"
    NOW="${NOW:0:13}"
  else
    NOW="$(date +%s%3N)"
  fi
}

size_text() {
  local size="$1" unit=B next
  for next in KiB MiB GiB TiB; do
    ((size >= 10240)) || break
    size=$((size / 1024)) unit="$next"
  done
  printf '%s %s' "$size" "$unit"
}

# ---- Options

OUTPUT='' BROKER='' CLUSTER='' CLUSTER_ID='' TOPICS='' WANTED='' KAFKA_HOME='' BOOTSTRAP='' COMMAND_CONFIG='' PROPERTIES='' STEPS=''
SINCE_SNAPSHOT='' TEXT='' LINK='' RATE=0 DRY_RUN='' PROBLEMS=0 METADATA_DIR=''
LOG_DIRS=()
declare -A NOTED=()                   # setting of the broker -> value

parse_options() {
  local value
  while (($#)); do
    case "$1" in
      --help | -h)
        sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
      --since-snapshot) SINCE_SNAPSHOT=yes ;;
      --text) TEXT=yes ;;
      --link) LINK=yes ;;
      --dry-run) DRY_RUN=yes ;;
      --output | --log-dirs | --server-properties | --broker-id | --cluster | --topics | --partitions | --step | --limit-rate | \
        --kafka-home | --bootstrap-server | --command-config)
        [[ -n "${2:-}" ]] || misused "$1 needs a value"
        value="$2"
        case "$1" in
          --output) OUTPUT="${value%/}" ;;
          --log-dirs) IFS=, read -r -a LOG_DIRS <<<"$value" ;;
          --server-properties) PROPERTIES="$value" ;;
          --broker-id) BROKER="$value" ;;
          --cluster) CLUSTER="$value" ;;
          --topics) TOPICS="$value" ;;
          --partitions) WANTED=",$value," ;;
          --step) STEPS+=" $value " ;;
          --limit-rate) RATE="$(bytes_of "$value")" || misused "--limit-rate $value: expected a number, or one with K, M or G" ;;
          --kafka-home) KAFKA_HOME="${value%/}" ;;
          --bootstrap-server) BOOTSTRAP="$value" ;;
          --command-config) COMMAND_CONFIG="$value" ;;
        esac
        shift
        ;;
      *) misused "unknown option: $1" ;;
    esac
    shift
  done
}

bytes_of() {
  [[ "$1" =~ ^([1-9][0-9]{0,9})([KMG]?)$ ]] || return 1
  case "${BASH_REMATCH[2]}" in
    K) echo $((BASH_REMATCH[1] << 10)) ;;
    M) echo $((BASH_REMATCH[1] << 20)) ;;
    G) echo $((BASH_REMATCH[1] << 30)) ;;
    *) echo "${BASH_REMATCH[1]}" ;;
  esac
}

check_options() {
  local step dir name
  [[ -n "$OUTPUT" ]] || misused "--output is missing: name the folder of the capture"
  [[ -z "$TOPICS" || -z "$WANTED" ]] || misused "--topics and --partitions are mutually exclusive"
  [[ -z "$TEXT" || -z "$SINCE_SNAPSHOT$LINK" ]] || misused "--text cannot be combined with --since-snapshot or --link"
  # shellcheck disable=SC2319  # 2: no expression
  if [[ '' =~ ^($TOPICS)$ ]]; then :; elif (($? == 2)); then misused "--topics $TOPICS: is not an extended regular expression"; fi
  [[ -z "$CLUSTER" || ! "$CLUSTER" =~ [[:cntrl:]] ]] || misused "--cluster: a name cannot contain control characters"
  for step in $STEPS; do
    [[ "$step" =~ ^(coordinators|partitions|coordinators-again)$ ]] ||
      misused "--step $step: expected coordinators, partitions or coordinators-again"
  done
  [[ -n "$STEPS" ]] || STEPS=" coordinators  partitions  coordinators-again "
  [[ -z "$PROPERTIES" ]] || read_properties
  ((${#LOG_DIRS[@]})) || misused "--log-dirs or --server-properties is missing: name the log directories of the broker"
  for dir in "${LOG_DIRS[@]}"; do
    [[ -d "$dir" && -r "$dir" && -x "$dir" ]] || misused "$dir: not a readable log directory; run this as the user of the broker"
    check_is_log_dir "$dir"
    [[ -n "$BROKER" ]] || BROKER="$(property_of "$dir/meta.properties" node.id broker.id)"
    [[ -n "$CLUSTER_ID" ]] || CLUSTER_ID="$(property_of "$dir/meta.properties" cluster.id)"
    case "$(absolute "$OUTPUT")/" in "$(absolute "$dir")"/*) misused "--output $OUTPUT is inside the log directory $dir" ;; esac
  done
  [[ "$BROKER" =~ ^[0-9]+$ ]] || misused "--broker-id is missing: meta.properties in ${LOG_DIRS[0]} does not contain it"
  for name in ${BOOTSTRAP:+kafka-topics} ${TEXT:+kafka-dump-log}; do
    tool "$name" >/dev/null || misused "--kafka-home ${KAFKA_HOME:-is missing}: neither $name.sh nor $name is in" \
      "$([[ -n "$KAFKA_HOME" ]] && echo "its bin" || echo PATH)"
  done
  [[ -z "$COMMAND_CONFIG" || -r "$COMMAND_CONFIG" ]] || misused "--command-config $COMMAND_CONFIG cannot be read"
}

check_is_log_dir() { # DIR, which may be the root of a volume that has log directories
  local file below=''
  [[ ! -e "$1/meta.properties" ]] || return 0
  for file in "$1"/*/meta.properties "$1"/*/*/meta.properties; do below+="${below:+,}${file%/*}"; done
  [[ -z "$below" ]] || misused "$1 has no meta.properties: use --log-dirs $below"
}

tool() { # NAME : the path of one of Kafka's tools, whose names end with .sh, or, of Confluent Platform, do not
  if [[ -z "$KAFKA_HOME" ]]; then
    type -P "$1.sh" || type -P "$1"
  elif [[ -x "$KAFKA_HOME/bin/$1.sh" ]]; then
    printf '%s' "$KAFKA_HOME/bin/$1.sh"
  else
    [[ -x "$KAFKA_HOME/bin/$1" ]] && printf '%s' "$KAFKA_HOME/bin/$1"
  fi
}

# Runs a command, and shows what it says on stderr only if it fails.
quietly() {
  local said
  { said="$("$@" 2>&1 >&3)"; } 3>&1 || { say "$(head -c 500 <<<"$said")"; return 1; }
}

absolute() { # PATH, which need not be there yet
  local dir="$1" rest=''
  while [[ ! -d "$dir" ]]; do
    rest="/${dir##*/}$rest"
    if [[ "$dir" == */* ]]; then dir="${dir%/*}" dir="${dir:-/}"; else dir=.; fi
  done
  printf '%s%s' "$(cd "$dir" && pwd -P)" "$rest"
}

property_of() { # FILE NAME... : the value of the first of the names that is there
  local name line
  [[ -r "$1" ]] || return 0
  for name in "${@:2}"; do
    while IFS= read -r line || [[ -n "$line" ]]; do
      [[ "$line" =~ ^[[:space:]]*"$name"[[:space:]]*[=:][[:space:]]*(.*[^[:space:]]) ]] || continue
      printf '%s' "${BASH_REMATCH[1]}"
      return 0
    done <"$1"
  done
}

read_properties() {
  local name value
  [[ -r "$PROPERTIES" ]] || misused "--server-properties $PROPERTIES cannot be read"
  ((${#LOG_DIRS[@]})) || IFS=', ' read -r -a LOG_DIRS <<<"$(property_of "$PROPERTIES" log.dirs log.dir)"
  [[ -n "$BROKER" ]] || BROKER="$(property_of "$PROPERTIES" node.id broker.id)"
  METADATA_DIR="$(property_of "$PROPERTIES" metadata.log.dir)"
  [[ "$BROKER" != -1 ]] || BROKER=''  # ZooKeeper generated the id
  for name in $SETTINGS; do
    value="$(property_of "$PROPERTIES" "$name")"
    [[ -z "$value" ]] || NOTED["setting:$name"]="$value"
  done
}

# ---- Partitions to copy

COORDINATORS=() PARTITIONS=()         # folders, with their log directory
METADATA_LOG=()                       # the folder of the metadata log, if there is one

find_partitions() {
  local dir folder name topic
  for dir in "${LOG_DIRS[@]}" ${METADATA_DIR:+"$METADATA_DIR"}; do
    if [[ ! -d "$dir/$METADATA" ]]; then :; elif ((${#METADATA_LOG[@]} == 0)); then METADATA_LOG=("$dir/$METADATA"); fi
  done
  for dir in "${LOG_DIRS[@]}"; do
    for folder in "$dir"/*/; do
      folder="${folder%/}" name="${folder##*/}"
      # Excludes <topic>-<partition>.<hash>-delete, -future and -stray, which end with a word.
      [[ "$name" =~ ^($TOPIC)-[0-9]+$ ]] || continue
      topic="${BASH_REMATCH[1]}"
      if [[ "$topic" == "$COORDINATOR" ]]; then
        COORDINATORS+=("$folder")
      elif [[ "$name" != "$METADATA" ]] && is_wanted "$topic" "$name"; then
        PARTITIONS+=("$folder")
      fi
    done
  done
}

is_wanted() { # TOPIC TOPIC-PARTITION
  [[ -z "$TOPICS" || "$1" =~ ^($TOPICS)$ ]] && [[ -z "$WANTED" || "$WANTED" == *",$2,"* ]]
}

# Sets LISTED (name -> current "inode size mtime" of the files to copy) and NAMES (in order). Indexes are listed before segments,
# because an index entry without its marker would look like a damaged log. Fails if a file disappears meanwhile.
list_files() { # FOLDER
  local out inode size changed time name start=''
  local -A bases=()
  LISTED=() NAMES=()
  out="$(cd "$1" && {
    files=()
    for name in leader-epoch-checkpoint partition.metadata; do [[ ! -f "$name" ]] || files+=("$name"); done
    files+=(*.snapshot *.txnindex *.checkpoint *.log)
    ((${#files[@]} == 0)) || stat -c '%i %s %y %n' -- "${files[@]}"
  } 2>/dev/null)" || return 1
  while read -r inode size changed time _ name; do  # date, time to the nanosecond, zone
    changed+="T$time"
    [[ "$name" =~ $FILE ]] || continue
    [[ "$name" != *.log ]] || bases["${name%.*}"]=1
    NAMES+=("$name")
    LISTED["$name"]="$inode $size $changed"
  done <<<"$out"
  [[ -n "$SINCE_SNAPSHOT" && ! "${1##*/}" =~ ^($COORDINATOR|$GROUPS_TOPIC|${METADATA%-*})-[0-9]+$ ]] || return 0
  for name in "${NAMES[@]}"; do       # names have 20 digits, so they sort like numbers
    if [[ "$name" == *.snapshot && -n "${bases[${name%.*}]:-}" && "$name" > "$start" ]]; then start="${name%.*}"; fi
  done
  for name in "${!NAMES[@]}"; do
    [[ "${NAMES[name]}" =~ ^[0-9] && "${NAMES[name]}" < "$start" ]] || continue
    unset "LISTED[${NAMES[name]}]" "NAMES[name]"
  done
}

declare -A LISTED=() KNOWN=()
NAMES=()

listed_bytes() {
  local entry total=0
  for entry in "${LISTED[@]}"; do
    entry="${entry#* }"
    total=$((total + ${entry% *}))
  done
  BYTES=$total
}

# ---- Journals: <copy>/journal.capture has a line "inode size mtime name" for each finished file, and, once the partition is
# complete, the instant that the copy shows. Bash evaluates what stands in arithmetic, so other lines are not read.

JOURNAL=journal.capture INSTANT=captured_at_ms

read_journal() { # JOURNAL
  local inode size changed name
  KNOWN=() TAKEN=''
  [[ -r "$1" ]] || return 0
  while read -r inode size changed name; do
    if [[ "$inode $size" =~ ^$INSTANT\ [0-9]{1,15}$ ]]; then
      TAKEN="$size"
    elif [[ "$inode $size $changed" =~ ^[0-9]+\ [0-9]{1,18}\ [0-9T:.-]+$ && "$name" =~ $FILE ]]; then
      KNOWN["$name"]="$inode $size $changed"
    fi
  done <"$1"
}

is_journal_as_listed() {
  local name
  [[ -n "$TAKEN" && ${#KNOWN[@]} == "${#LISTED[@]}" ]] || return 1
  for name in "${!LISTED[@]}"; do [[ "${KNOWN[$name]:-}" == "${LISTED[$name]}" ]] || return 1; done
}

write_journal() { # JOURNAL INSTANT(or nothing): what KNOWN holds
  local name
  drop_link "$1.tmp"
  {
    for name in "${!KNOWN[@]}"; do printf '%s %s\n' "${KNOWN[$name]}" "$name"; done
    [[ -z "$2" ]] || printf '%s %s\n' "$INSTANT" "$2"
  } >"$1.tmp" && mv -f "$1.tmp" "$1"
}

# Checks that the listed segments are still the same files and not shorter. Otherwise the copy may mix compacted and uncompacted
# segments. Segments at the beginning may be gone, because retention deleted them after they were copied.
is_still_there() { # FOLDER
  local name inode size found oldest='' SINCE_SNAPSHOT=''  # a newer snapshot does no harm
  local -A before=()
  for name in "${NAMES[@]}"; do [[ "$name" != *.log ]] || before["$name"]="${LISTED[$name]}"; done
  list_files "$1" || return 1
  for name in "${NAMES[@]}"; do [[ "$name" != *.log || -n "$oldest" ]] || oldest="$name"; done
  for name in "${!before[@]}"; do
    read -r inode size _ <<<"${before[$name]}"
    found="${LISTED[$name]:-}"
    [[ -n "$found" || -z "$oldest" || ! "$name" < "$oldest" ]] || continue
    [[ "$found" == "$inode "* ]] || return 1
    found="${found#* }"
    ((${found% *} >= size)) || return 1
  done
}

# ---- Copying

# Appends bytes [FROM, TO) of a file to a copy, and nothing that was written after TO meanwhile.
copy_range() { # FILE COPY FROM TO
  local from="$3" count
  local step=$(($4 - $3))
  ((RATE == 0 || RATE >= step)) || step=$RATE
  while ((from < $4)); do
    count=$(($4 - from < step ? $4 - from : step))
    read_range "$1" "$from" "$count" oflag=append conv=notrunc of="$2" || return 1
    from=$((from + count))
    pace "$count"
  done
}

PACED=0 PACE_BEGAN=0

pace() { # BYTES just copied
  ((RATE > 0)) || return 0
  local due
  PACED=$((PACED + $1))
  now
  due=$((PACE_BEGAN + PACED * 1000 / RATE - NOW))
  ((due <= 0)) || sleep "$((due / 1000)).$(printf '%03d' $((due % 1000)))"
}

copy_file() { # FILE COPY SIZE ACTIVE_SEGMENT
  local name="${1##*/}" have is_rolled=''
  [[ "$name" != *.log || "$name" == "$4" ]] || is_rolled=yes
  have="${KNOWN[$name]:-}"
  if [[ -n "$have" ]] && can_continue "$1" "$2" "$3" "$have"; then
    have="${have#* }"
    copy_range "$1" "$2" "${have% *}" "$3"
    return
  fi
  [[ ! -e "$2.tmp" && ! -L "$2.tmp" ]] || rm -f "$2.tmp"
  if [[ -n "$LINK" && -n "$is_rolled" ]] && ln "$1" "$2.tmp" 2>/dev/null; then
    :
  elif [[ -n "$is_rolled" && "$RATE" == 0 ]]; then
    cp "${REFLINK[@]}" "$1" "$2.tmp" || return 1
  else
    : >"$2.tmp"
    copy_range "$1" "$2.tmp" 0 "$3" || return 1
  fi
  [[ "$(stat -c %s "$2.tmp")" == "$3" ]] || return 1
  mv -f "$2.tmp" "$2"
}

REFLINK=()

# Checks that a copy is the beginning of a segment that has grown since: the same file, longer, with the end of the copy in it.
can_continue() { # FILE COPY SIZE KNOWN
  local inode size from sum
  read -r inode size _ <<<"$4"
  [[ "$1" == *.log && "${LISTED[${1##*/}]}" == "$inode "* && -f "$2" && ! -L "$2" && ! "$1" -ef "$2" ]] && ((size > 0 && size <= $3)) || return 1
  (($(stat -c %s "$2") >= size)) || return 1
  truncate -s "$size" "$2" || return 1  # a killed call may have copied more
  from=$((size > COMPARED ? size - COMPARED : 0))
  sum="$(range_sum "$2" "$from" "$size")" || return 1
  [[ "$sum" == *" $((size - from))" && "$sum" == "$(range_sum "$1" "$from" "$size")" ]]
}

range_sum() { read_range "$1" "$2" "$(($3 - $2))" | cksum; } # FILE FROM TO

read_range() { # FILE FROM COUNT OPTIONS...
  dd if="$1" bs=1M iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" status=none "${@:4}"
}

drop_link() { [[ ! -L "$1" ]] || rm -f -- "$1"; }

take_partition() { # FOLDER COPY
  local try name
  for name in "$1"/*; do
    [[ ! -L "$name" ]] || { say "$name is a link, not a file of a broker"; return 1; }
  done
  drop_link "$2"
  for ((try = 0; try < TRIES; try++)); do
    ((try == 0)) || sleep 0.2
    # Taken before the files are listed: the copy shows what was written up to about this instant, and nothing later.
    now
    local instant="$NOW" journal="$2/$JOURNAL"
    if ! list_files "$1"; then
      [[ -d "$1" ]] || { say "${1##*/} is gone: its topic was deleted, or the partition was moved"; return 0; }
      continue
    fi
    mkdir -p "$2"
    read_journal "$journal"
    if is_journal_as_listed; then
      write_journal "$journal" "$instant"
      return
    fi
    if [[ -n "$TEXT" ]]; then print_partition "$1" "$2" || continue; else copy_partition "$1" "$2" || continue; fi
    if is_still_there "$1"; then
      write_journal "$journal" "$instant"
      return
    fi
  done
  return 1
}

copy_partition() { # FOLDER COPY
  local name size active='' old
  for name in "${!KNOWN[@]}"; do
    [[ -n "${LISTED[$name]:-}" && -f "$2/$name" ]] || unset "KNOWN[$name]"
  done
  write_journal "$2/$JOURNAL" '' || return 1
  for old in "$2"/*; do               # deleted, or replaced by compaction
    [[ -n "${LISTED[${old##*/}]:-}" || "${old##*/}" == "$JOURNAL" ]] || rm -f -- "$old"
  done
  for name in "${NAMES[@]}"; do [[ "$name" != *.log ]] || active="$name"; done
  for name in "${NAMES[@]}"; do
    [[ "${KNOWN[$name]:-}" != "${LISTED[$name]}" ]] || continue
    size="${LISTED[$name]#* }" size="${size% *}"
    copy_file "$1/$name" "$2/$name" "$size" "$active" || return 1
    KNOWN["$name"]="${LISTED[$name]}"
    printf '%s %s\n' "${LISTED[$name]}" "$name" >>"$2/$JOURNAL"
    DONE_BYTES=$((DONE_BYTES + size))
    progress
  done
}

print_partition() { # FOLDER COPY
  local printed='' name="${2##*/}" how=--deep-iteration out="$2.txt"
  # A file whose name would be too long has a sum of it: the text names its partition in itself.
  if ((${#name} + 8 > LONGEST)); then read -r out _ < <(cksum <<<"$name") && out="${2%/*}/$out.txt"; fi
  [[ "${1##*/}" != "$COORDINATOR"-* ]] || how=--transaction-log-decoder
  [[ "${1##*/}" != "$METADATA" ]] || how=--cluster-metadata-decoder
  for name in "${NAMES[@]}"; do [[ ! "$name" =~ ^[0-9] ]] || printed+="${printed:+,}$1/$name"; done
  rm -f "$2/$JOURNAL"
  quietly "$(tool kafka-dump-log)" "$how" --files "$printed" | "${PACK[@]}" >"$out.tmp" || return 1
  mv -f "$out.tmp" "$out$PACKED"
  KNOWN=()
  for name in "${NAMES[@]}"; do KNOWN["$name"]="${LISTED[$name]}"; done
}

PACK=(cat) PACKED=''

copy_checkpoints() { # LOG_DIR COPY
  local name
  mkdir -p "$2"
  # Copied before the partitions, because a high watermark that is newer than the copies would look like data loss.
  for name in replication-offset-checkpoint recovery-point-offset-checkpoint log-start-offset-checkpoint \
    cleaner-offset-checkpoint meta.properties; do
    [[ -f "$1/$name" ]] || continue
    { cp "$1/$name" "$2/$name.tmp" && mv -f "$2/$name.tmp" "$2/$name"; } || warn "$1/$name cannot be copied"
  done
}

# Sets PLACE to the folder for a log directory. Several log directories have separate folders, because each has its checkpoints.
place_of() { # LOG_DIR
  local number
  PLACE="$OUTPUT/$BROKER"
  ((${#LOG_DIRS[@]} > 1)) || return 0
  for number in "${!LOG_DIRS[@]}"; do
    [[ "${LOG_DIRS[number]}" != "$1" ]] || PLACE+="/dir-$number"
  done
}

DONE_BYTES=0 DONE=0 SAID=0

progress() {
  ((SECONDS - SAID >= 10)) || return 0
  SAID=$SECONDS
  say "  $STEP: $DONE of $OF partitions, $(size_text "$DONE_BYTES") copied"
}

take_step() { # STEP FOLDER...
  local folder
  STEP="$1" OF=$(($# - 1)) DONE=0 DONE_BYTES=0
  say "$STEP: $OF partitions"
  shift
  for folder in "$@"; do
    place_of "${folder%/*}"
    [[ "$STEP" != coordinators ]] || PLACE="$OUTPUT/$BROKER/first"
    mkdir -p "$PLACE"
    take_partition "$folder" "$PLACE/${folder##*/}" ||
      warn "${folder##*/} could not be copied: it is unreadable, or keeps changing, or the disk is full"
    DONE=$((DONE + 1))
    progress
  done
}

# ---- capture.json

ask() { # TOOL ARGUMENTS... : what it prints
  local config=()
  [[ -z "$COMMAND_CONFIG" ]] || config=(--command-config "$COMMAND_CONFIG")
  quietly timeout 120 "$(tool "$1")" --bootstrap-server "$BOOTSTRAP" "${config[@]}" "${@:2}" </dev/null
}

ask_cluster() {
  local out line count=0 s='[[:space:]]+'
  local described="Topic:$s($TOPIC)${s}Partition:$s([0-9]+)${s}Leader:$s(-?[0-9]+|none)${s}Replicas:$s([0-9,]+)"
  if out="$(ask kafka-topics --describe)"; then
    while IFS= read -r line; do
      [[ "$line" =~ $described ]] || continue
      [[ "${BASH_REMATCH[1]}" != "$COORDINATOR" ]] || count=$((count + 1))
      # `none`: no replica is alive
      NOTED["partition:${BASH_REMATCH[1]}-${BASH_REMATCH[2]}"]="${BASH_REMATCH[3]/none/-1} ${BASH_REMATCH[4]}"
    done <<<"$out"
    ((count == 0)) || NOTED["setting:transaction.state.log.num.partitions"]=$count
  else
    warn "kafka-topics got no answer from $BOOTSTRAP: capture.json will name no leaders"
  fi
  if out="$(ask kafka-configs --entity-type brokers --entity-name "$BROKER" --describe --all)"; then
    while IFS= read -r line; do
      [[ "$line" =~ ^[[:space:]]+([a-z.]+)=(.*)[[:space:]]sensitive=false ]] || continue
      [[ "$SETTINGS" == *" ${BASH_REMATCH[1]} "* && "${BASH_REMATCH[2]}" != null ]] || continue
      NOTED["setting:${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
    done <<<"$out"
    ((count == 0)) || NOTED["setting:transaction.state.log.num.partitions"]=$count  # actual, not for a new topic
  else
    warn "kafka-configs got no answer from $BOOTSTRAP: capture.json will contain no settings"
  fi
  if tool kafka-features >/dev/null && out="$(ask kafka-features describe)"; then
    line="Feature:${s}transaction\.version[^"$'\n'"]*FinalizedVersionLevel:$s([0-9]+)"
    if [[ "$out" =~ $line ]]; then NOTED[transaction_version]="${BASH_REMATCH[1]}"; fi
  fi
  line="$(tool kafka-broker-api-versions)" || return 0
  out="$(quietly "$line" --version </dev/null)" || out=''
  if [[ "$out" =~ [0-9]+(\.[0-9]+)+[^[:space:]]* ]]; then NOTED[kafka_version]="${BASH_REMATCH[0]}"; fi
}

# Keeps the answers of earlier calls that this call did not get again.
remember_notes() {
  local key value
  if [[ -r "$OUTPUT/$BROKER/notes.capture" ]]; then
    while IFS=$'\t' read -r key value; do
      [[ "$key" =~ ^(cluster|kafka_version|transaction_version|setting:[a-z.]+)$ ||
        "$key $value" =~ ^partition:$TOPIC-[0-9]+\ -?[0-9]+\ [0-9,]+$ ]] || continue
      [[ -z "$value" || -n "${NOTED[$key]:-}" ]] || NOTED["$key"]="$value"
    done <"$OUTPUT/$BROKER/notes.capture"
  fi
  NOTED[cluster]="${CLUSTER:-${NOTED[cluster]:-$CLUSTER_ID}}"
  for key in "${!NOTED[@]}"; do printf '%s\t%s\n' "$key" "${NOTED[$key]}"; done >"$OUTPUT/$BROKER/notes.capture"
}

json_text() {
  local text="${1//[[:cntrl:]]/}"
  text="${text//\\/\\\\}"
  printf '"%s"' "${text//\"/\\\"}"
}

json_object() { # NAME LINES... : each line is a member
  local line separator=''
  printf ',\n  "%s": {' "$1"
  if (($# > 1)); then
    printf '%s\n' "${@:2}" | sort -V | while IFS= read -r line; do
      printf '%s\n    %s' "$separator" "$line"
      separator=,
    done
  fi
  printf '\n  }'
}

write_capture_json() { # INSTANTS(yes or nothing)
  local key value journal name lines=()
  {
    printf '{\n  "captured_by": "scripts/capture.sh"'
    for key in cluster kafka_version; do
      [[ -z "${NOTED[$key]:-}" ]] || printf ',\n  "%s": %s' "$key" "$(json_text "${NOTED[$key]}")"
    done
    for key in "transaction_version " "coordinator_partitions setting:transaction.state.log.num.partitions" \
      "transaction_max_timeout_ms setting:transaction.max.timeout.ms" \
      "transactional_id_expiration_ms setting:transactional.id.expiration.ms" \
      "producer_id_expiration_ms setting:producer.id.expiration.ms"; do
      name="${key#* }" key="${key% *}"
      value="${NOTED[${name:-$key}]:-}"
      [[ ! "$value" =~ ^[0-9]+$ ]] || printf ',\n  "%s": %s' "$key" "$value"
    done
    for key in "${!NOTED[@]}"; do
      [[ "$key" != setting:* ]] || lines+=("$(json_text "${key#setting:}"): $(json_text "${NOTED[$key]}")")
    done
    json_object broker_settings "${lines[@]}"
    lines=()
    for key in "${!NOTED[@]}"; do
      name="${key#partition:}"
      [[ "$key" == partition:* ]] || continue
      [[ "${name%-*}" == "$COORDINATOR" ]] || is_wanted "${name%-*}" "$name" || continue
      lines+=("\"$name\": {\"leader\": ${NOTED[$key]%% *}, \"replicas\": [${NOTED[$key]#* }]}")
    done
    json_object partitions "${lines[@]}"
    lines=()
    if [[ -n "$1" ]]; then
      for journal in "$OUTPUT/$BROKER"/*/"$JOURNAL" "$OUTPUT/$BROKER"/{first,dir-*}/*/"$JOURNAL"; do
        read_journal "$journal"
        [[ -n "$TAKEN" ]] || continue
        key="$BROKER" name="${journal%/*}"
        [[ "$name" != */first/* ]] || key+=/first
        lines+=("\"$key/${name##*/}\": $TAKEN")
      done
    fi
    json_object captured_at_ms "${lines[@]}"
    printf '\n}\n'
  } >"$OUTPUT/$BROKER/capture.json.tmp"
  mv -f "$OUTPUT/$BROKER/capture.json.tmp" "$OUTPUT/$BROKER/capture.json"
}

# ---- Main

plan() { # says what there is, and sees that it fits
  local folder total=0 free used
  for folder in "${COORDINATORS[@]}" "${PARTITIONS[@]}" "${METADATA_LOG[@]}"; do
    list_files "$folder" || continue
    listed_bytes
    total=$((total + BYTES))
    [[ -z "$DRY_RUN" ]] || printf '%s\t%s files\t%s\n' "${folder##*/}" "${#NAMES[@]}" "$(size_text "$BYTES")"
  done
  say "broker $BROKER of cluster ${CLUSTER:-${CLUSTER_ID:-without a name}}: ${#COORDINATORS[@]} coordinator partitions," \
    "${#PARTITIONS[@]} others, ${#METADATA_LOG[@]} metadata log, $(size_text "$total")"
  [[ -z "$DRY_RUN" ]] || exit 0
  [[ -z "$LINK$TEXT" ]] || return 0
  folder="$(absolute "$OUTPUT")"
  while [[ ! -d "$folder" ]]; do folder="$(dirname "$folder")"; done
  { read -r _ && read -r _ _ _ free _; } < <(df -Pk "$folder")
  free=$((free * 1024))
  read -r used _ < <(du -sk "$OUTPUT/$BROKER" 2>/dev/null || echo 0)
  ((total <= free + used * 1024)) || fail "$OUTPUT has room for $(size_text "$free") only; nothing was copied"
}

lock() {
  local other="$OUTPUT/$BROKER/pid.capture" process=''
  if [[ -r "$other" ]]; then process="$(<"$other")"; fi
  if [[ "$process" =~ ^[0-9]+$ ]] && kill -0 "$process" 2>/dev/null; then
    fail "process $process is writing to $OUTPUT/$BROKER; wait for it, or remove $other"
  fi
  echo $$ >"$other"
}

finish() {
  local code=$?
  trap - EXIT
  write_capture_json yes || code=1
  rm -f "$OUTPUT/$BROKER/pid.capture"
  exit "$code"
}

main() {
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || misused "needs bash 4.4 or newer"
  parse_options "$@"
  check_options
  find_partitions
  ((${#COORDINATORS[@]} + ${#PARTITIONS[@]} + ${#METADATA_LOG[@]})) || misused "no partition to copy in ${LOG_DIRS[*]}"
  ((${#COORDINATORS[@]})) || say "no coordinator partition on this broker: hanging transactions need those of the other brokers"
  if [[ -z "$DRY_RUN" ]] && cp --reflink=auto --version >/dev/null 2>&1; then REFLINK=(--reflink=auto); fi
  if [[ -n "$TEXT" ]] && command -v gzip >/dev/null; then PACK=(gzip -c) PACKED=.gz; fi
  plan

  mkdir -p "$OUTPUT/$BROKER" || fail "$OUTPUT cannot be written to"
  lock
  trap finish EXIT
  trap 'say "interrupted; call it again to resume"; exit 1' INT TERM HUP
  [[ -z "$BOOTSTRAP" ]] || ask_cluster
  remember_notes
  write_capture_json ''               # so that after a kill -9 no instant is older than its copy
  now
  PACE_BEGAN=$NOW

  [[ "$STEPS" != *" coordinators "* ]] || take_step coordinators "${COORDINATORS[@]}"
  if [[ "$STEPS" == *" partitions "* ]]; then
    local dir
    for dir in "${LOG_DIRS[@]}"; do
      place_of "$dir"
      copy_checkpoints "$dir" "$PLACE"
    done
    take_step partitions "${PARTITIONS[@]}"
  fi
  [[ "$STEPS" != *" coordinators-again "* ]] || take_step coordinators-again "${COORDINATORS[@]}"
  # Last, so that it shows the leaders of the whole period in which the others were copied.
  [[ "$STEPS" != *" partitions "* && "$STEPS" != *" coordinators-again "* ]] || take_step metadata "${METADATA_LOG[@]}"
  ((PROBLEMS == 0)) || fail "$PROBLEMS problems, see above; call it again to go on with what is missing"
  say "done. Audit it: ./spark-submit.sh audit --input $OUTPUT --output OUT"
}

main "$@"
