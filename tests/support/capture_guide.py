"""The guide for operators, carried out with folders as machines.

A path of a broker (`/var/lib/kafka/…`) is that path below the machine's folder. Whatever needs a network is a stand-in
on PATH.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOCAL = "local"
#: machine -> id of its broker
MACHINES = {LOCAL: 1, "broker-1": 1, "broker-2": 2, "broker-3": 3, "kafka-0": 4, "kafka-1": 5}
PATHS = re.compile(r"(?<![\w.$])/(var/lib/kafka|etc/kafka|opt/kafka|backup|tmp)(?![\w-])")
PARSES = "import sys; from txnlib.ask.main import parser; parser().parse_args(sys.argv[1:])"
STAND_INS = {
    "ssh": 'host=$1; shift; exec bash -c "${*//$MACHINES\\/local\\//$MACHINES/$host/}"',
    "scp": """
args=()
for arg in "$@"; do
  [[ "$arg" != -r ]] || arg=-R
  if [[ "$arg" == *:* ]]; then
    host=${arg%%:*} arg=${arg#*:}
    arg=${arg//$MACHINES\\/local\\//$MACHINES/$host/}
  fi
  args+=("$arg")
done
exec cp "${args[@]}"
""",
    "kubectl": """
case "$1" in
  cp) shift; exec scp -r "$@" ;;
  exec) pod=$2; shift 3; exec "${@//$MACHINES\\/local\\//$MACHINES/$pod/}" ;;
esac
exit 1
""",
    # The command itself is run against brokers in tests/wire_capture.
    "txn-audit": f'exec {sys.executable} -c "{PARSES}" "$@"',
    "aws": '[[ "$1 $2 $3" == "s3 cp --recursive" && -d "$4" && "$5" == s3://*/ ]]',
}
KAFKA_TOOLS = {
    "kafka-topics.sh": "printf 'Topic: orders\\tPartition: 0\\tLeader: 1\\tReplicas: 1,2\\tIsr: 1,2\\n'",
    "kafka-configs.sh": "printf '  transaction.max.timeout.ms=900000 sensitive=false synonyms={}\\n'",
    "kafka-broker-api-versions.sh": "echo 4.1.1",
    "kafka-dump-log.sh": 'echo "Dumping ${*: -1}"; echo "Log starting offset: 0"',
}


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def _machine(machine: Path, broker: int) -> None:
    data = machine / "var/lib/kafka/data"
    for folder in ("__transaction_state-0", "__transaction_state-1", "orders-0", "orders-1", "payments.eu-0"):
        for name in ("00000000000000000000.log", "00000000000000000050.log", "00000000000000000050.snapshot"):
            (data / folder).mkdir(parents=True, exist_ok=True)
            (data / folder / name).write_text(f"{folder} {name}")
    (data / "__cluster_metadata-0").mkdir()
    for name in ("00000000000000000000.log", "00000000000000000007-0000000001.checkpoint"):
        (data / "__cluster_metadata-0" / name).write_text(f"__cluster_metadata-0 {name}")
    (data / "orders-0" / "00000000000000000000.log.deleted").write_text("no data")
    (data / "meta.properties").write_text(f"node.id={broker}\ncluster.id=ours\n")
    (data / "replication-offset-checkpoint").write_text("0\n0\n")
    for name, text in KAFKA_TOOLS.items():
        _program(machine / "opt/kafka/bin" / name, text)
    for folder in ("etc/kafka", "backup", "tmp"):
        (machine / folder).mkdir(parents=True, exist_ok=True)
    (machine / "etc/kafka/server.properties").write_text(f"node.id={broker}\nlog.dirs={data}\n")


def carry_out(text: str, folder: Path) -> Path:
    """The folder in which the commands of one block were carried out; fails if one of them did."""
    machines, here = folder / "machines", folder / "here"
    for name, broker in MACHINES.items():
        _machine(machines / name, broker)
    for name, program in STAND_INS.items():
        _program(folder / "bin" / name, program)
    here.mkdir()
    (here / "scripts").symlink_to(ROOT / "scripts")
    script = PATHS.sub(lambda match: f"{machines}/{LOCAL}/{match[1]}", text)
    environment = {
        **os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "MACHINES": str(machines), "HOME": str(here),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-euc", script], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return here
