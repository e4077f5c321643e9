"""Real brokers on loopback, and Kafka's own command-line tools.

run-tests.sh brings the jars, as bench/run.sh does (`fetch_kafka`), and names them in KAFKA_CLASS_PATH.
"""

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLUSTER_ID = "dHhubGliLWNhcHR1cmUtMQ"
#: What Kafka's scripts start. The Maven packages have the classes, but not the scripts.
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-dump-log.sh": "kafka.tools.DumpLogSegments",
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-server-start.sh": "kafka.Kafka",
}
#: A tool lives for a second: no time to compile well.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx256M"
START_SECONDS = 90


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `nodes` are the folders of its brokers: server.properties, and data, the log directory."""

    home: Path
    bootstrap: str
    nodes: dict[int, Path]
    processes: dict[int, subprocess.Popen[bytes]]

    def tool(self, name: str, *arguments: str) -> str:
        """What one of Kafka's tools prints about this cluster."""
        command = [str(self.home / "bin" / name), "--bootstrap-server", self.bootstrap, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make_home(home: Path, version: str | None = None) -> Path:
    """A folder as Kafka's archive would unpack it, as far as its tools go. `version`: of the broker, another than the
    tools'."""
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else Path("java")
    (home / "bin").mkdir(parents=True)
    for name, main in TOOLS.items():
        script = home / "bin" / name
        jars = shlex.quote(_class_path(version))
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(java))} {SHORT_LIVED} -cp {jars} {main} "$@"\n')
        script.chmod(0o755)
    return home


def _class_path(version: str | None) -> str:
    """The jars of a broker; run-tests.sh brings other versions beside the first one (`fetch_broker`)."""
    jars, *others = os.environ["KAFKA_CLASS_PATH"].split(":")
    if version is None:
        return ":".join([jars, *others])
    folder = Path(jars).parent.with_name(f"kafka-{version}")
    assert folder.is_dir(), (
        f"{folder} is missing: run the slow tests by ./run-tests.sh slow, which brings Kafka {version}"
    )
    return f"{folder}/*:{others[-1]}"


@contextmanager
def running(
    folder: Path, brokers: int = 1, protocol: str = "PLAINTEXT", version: str | None = None, **settings: str
) -> Iterator[Cluster]:
    """A cluster whose brokers are their own controllers; `settings` with `_` for the dots of Kafka's names.

    Names that contain dots are taken as they are. `protocol`: how clients and brokers talk to brokers.
    """
    assert os.environ.get("KAFKA_CLASS_PATH"), (
        "KAFKA_CLASS_PATH is not set: run the tests by ./run-tests.sh, which brings Kafka"
    )
    home = make_home(folder / "kafka", version)
    ports = {node: (_free_port(), _free_port()) for node in range(1, brokers + 1)}
    voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in ports.items())
    bootstrap = ",".join(f"127.0.0.1:{port}" for port, _ in ports.values())
    nodes = {node: folder / f"node-{node}" for node in ports}
    cluster = Cluster(home, bootstrap, nodes, {})
    try:
        for node, (port, controller) in ports.items():
            _configure(nodes[node], node, port, controller, voters, min(brokers, 3), {"protocol": protocol, **settings})
        _in_each(cluster, "kafka-storage.sh", "format", "--cluster-id", CLUSTER_ID, "--config", "server.properties")
        for node, path in nodes.items():
            with (path / "out").open("wb") as out:
                command = [str(home / "bin" / "kafka-server-start.sh"), "server.properties"]
                cluster.processes[node] = subprocess.Popen(command, cwd=path, stdout=out, stderr=out)
        for node, (port, _) in ports.items():
            _await(cluster.processes[node], port, nodes[node] / "out")
        yield cluster
    finally:
        for process in cluster.processes.values():
            process.kill()
        for process in cluster.processes.values():
            process.wait()


def _configure(
    path: Path, node: int, port: int, controller: int, voters: str, replicas: int, given: dict[str, str]
) -> None:
    protocol = given.pop("protocol")
    settings = {
        "node.id": str(node),
        "process.roles": "broker,controller",
        "listeners": f"{protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
        "security.inter.broker.protocol": protocol,
        "controller.quorum.voters": voters,
        "log.dirs": str(path / "data"),
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **{name if "." in name else name.replace("_", "."): value for name, value in given.items()},
    }
    path.mkdir()
    (path / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def _in_each(cluster: Cluster, tool: str, *arguments: str) -> None:
    started = [
        subprocess.Popen(
            [str(cluster.home / "bin" / tool), *arguments], cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for path in cluster.nodes.values()
    ]
    for process in started:
        said, _ = process.communicate()
        assert process.returncode == 0, said.decode()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, out.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the broker did not start within {START_SECONDS} s: {out.read_text()}")
