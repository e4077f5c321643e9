"""Servers that speak as Amazon's, Google's and Microsoft's stores, and Hadoop."""

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from pyarrow import fs

from tests.support.daemons import wait_until

#: Where nobody listens.
NOWHERE: Final = "http://127.0.0.1:1"
#: Keys of the servers here: Azurite's for a test, and what no message may hold.
ACCOUNT: Final = "txnlib"
AZURITE_KEY: Final = base64.b64encode(b"of a server that lives as long as a test").decode()
SECRET: Final = base64.b64encode(b"what no message may hold, whoever reads it").decode()


#: Processes of their own: deltalake waits for answers with the interpreter's lock held, and pyarrow for some of
#: Google's.
_MOTO: Final = """
import threading

from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("listens on http://%s:%d" % server.get_host_and_port(), flush=True)
threading.Event().wait()
"""
#: With a thread for each request, because who is in the middle of one file may ask for the next.
_EMULATOR: Final = """
import http.server

http.server.HTTPServer = http.server.ThreadingHTTPServer
from gcp_storage_emulator.server import create_server

server = create_server("127.0.0.1", 0, in_memory=True)
server.start()
print(f"listens on http://127.0.0.1:{server._api._httpd.server_port}", flush=True)
"""


@dataclass(frozen=True)
class Store:
    """A server, a client that does not go through the code under test, and what an audit sees of both."""

    client: Any
    root: str
    """Before the bucket, and behind it."""
    endpoint: str
    """The variable that says where the server is."""
    credentials: str
    """A variable that whoever is refused is told of."""
    unreachable: str
    gone: str
    refused: str
    """What is said by it when it does not answer, has lost an object, refuses one."""
    refusing: Callable[[], AbstractContextManager[None]]
    """While this lasts, credentials with SECRET in them are offered or wanted in vain."""
    nowhere: str = NOWHERE
    """What the variable says where nobody listens."""
    forgotten: Callable[[], object] = lambda: None
    """Returns when nothing is left of a file that was deleted."""

    def uri(self, name: str) -> str:
        bucket, _, path = name.partition("/")
        return self.root.format(bucket) + (path and f"/{path}")

    def put(self, name: str, content: bytes) -> str:
        with self.client.open_output_stream(name) as stream:
            stream.write(content)
        return self.uri(name)

    @contextmanager
    def away(self) -> Iterator[None]:
        """While this lasts, nobody listens."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(self.endpoint, self.nowhere)
            patch.setattr("txnlib.readers.storage.object_stores.REQUEST_SECONDS", 1)
            patch.setattr("txnlib.readers.storage.object_stores.ATTEMPTS", 1)
            yield

    def delete(self, name: str) -> None:
        self.client.delete_file(name)
        self.forgotten()


@contextmanager
def amazons(folder: Path) -> Iterator[Store]:
    """moto. It takes any key until it is told to count down to the first request that it checks."""
    with _listening([sys.executable, "-c", _MOTO], folder) as host:

        def demand(count: bytes) -> None:
            request = urllib.request.Request(
                f"http://{host}/moto-api/reset-auth", count, {"Content-Type": "text/plain"}
            )
            with urllib.request.urlopen(request):
                pass

        @contextmanager
        def refusing() -> Iterator[None]:
            demand(b"0")
            try:
                yield
            finally:
                demand(b"inf")

        settings = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": SECRET}
        with _environment("AWS_", AWS_ENDPOINT_URL=f"http://{host}", AWS_EC2_METADATA_DISABLED="true", **settings):
            yield Store(
                fs.S3FileSystem(
                    endpoint_override=host, scheme="http", region="eu-central-1", allow_bucket_creation=True
                ),
                root="s3://{}",
                endpoint="AWS_ENDPOINT_URL",
                credentials="AWS_ACCESS_KEY_ID",
                unreachable="NETWORK_CONNECTION",
                gone="AWS Error",
                refused="ACCESS_DENIED|INVALID_ACCESS_KEY_ID",
                refusing=refusing,
            )


def s3a_options() -> tuple[str, ...]:
    """What spark-submit needs to write to a server of `amazons`. S3A_JARS: see `fetch_s3a`."""
    if "S3A_JARS" not in os.environ:
        pytest.skip("no S3A_JARS: `./run-tests.sh slow` fetches what it names")
    settings = {
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "endpoint.region": os.environ["AWS_REGION"],
        "path.style.access": "true",
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"spark.hadoop.fs.s3a.{name}={value}")]
    return ("--jars", os.environ["S3A_JARS"], *conf)


def googles(folder: Path) -> AbstractContextManager[Store]:
    """gcp-storage-emulator."""
    return _googles([sys.executable, "-c", _EMULATOR], folder)


def strict_googles(folder: Path) -> AbstractContextManager[Store]:
    """fake-gcs-server, which refuses what Google's own does. A program in Go."""
    program = _program("fake-gcs-server", "FAKE_GCS_SERVER", "go install github.com/fsouza/fake-gcs-server@latest")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return _googles([program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", port], folder)


@contextmanager
def _googles(asked: list[str], folder: Path) -> Iterator[Store]:
    """Neither checks credentials, so a key that cannot be one is refused before they are asked."""
    key = folder / "key.json"
    key.write_text(json.dumps({"type": "service_account", "private_key": SECRET}))

    @contextmanager
    def refusing() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("STORAGE_EMULATOR_HOST")
            patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
            yield

    with _listening(asked, folder) as host, _environment("CLOUD_STORAGE_", STORAGE_EMULATOR_HOST=f"http://{host}"):
        yield Store(
            fs.GcsFileSystem(anonymous=True, endpoint_override=host, scheme="http", project_id="here"),
            root="gs://{}",
            endpoint="STORAGE_EMULATOR_HOST",
            credentials="GOOGLE_APPLICATION_CREDENTIALS",
            unreachable="UNAVAILABLE",
            gone="NOT_FOUND",
            refused="Could not create a OAuth2 access token",
            refusing=refusing,
        )


@contextmanager
def microsofts(folder: Path) -> Iterator[Store]:
    """Azurite, which Arrow's own tests use. A program for Node, so it is not among what pip brings."""
    program = _program("azurite-blob", "AZURITE", "npm install --global azurite")
    asked = [
        program,
        "--blobPort",
        "0",
        "--inMemoryPersistence",
        "--disableTelemetry",
        "--skipApiVersionCheck",
        "--silent",
    ]
    with (
        _environment("AZURITE_ACCOUNTS", AZURITE_ACCOUNTS=f"{ACCOUNT}:{AZURITE_KEY}"),
        _listening(asked, folder) as host,
    ):
        settings = {"AZURE_STORAGE_SERVICE_ENDPOINT": f"http://{host}/{ACCOUNT}", "AZURE_STORAGE_KEY": AZURITE_KEY}
        with _environment("AZURE_", **settings):
            yield _azurite(host)


def _azurite(host: str) -> Store:
    at = {
        f"{api}_storage_{what}": value
        for api in ("blob", "dfs")
        for what, value in (("authority", host), ("scheme", "http"))
    }
    return Store(
        fs.AzureFileSystem(ACCOUNT, account_key=AZURITE_KEY, **at), root=f"abfss://{{}}@{ACCOUNT}.dfs.core.windows.net",
        endpoint="AZURE_STORAGE_SERVICE_ENDPOINT", credentials="AZURE_STORAGE_KEY", unreachable="Could not connect",
        gone="BlobNotFound", refused="AuthorizationFailure",
        refusing=lambda: _environment("AZURE_STORAGE_KEY", AZURE_STORAGE_KEY=SECRET),
    )  # fmt: skip


@contextmanager
def hadoops(folder: Path) -> Iterator[Store]:
    """HDFS of one machine, as Hadoop's own tests start it. A program in Java."""
    if "HADOOP_CLASS_PATH" not in os.environ:
        pytest.skip("no HADOOP_CLASS_PATH: `./run-tests.sh slow` fetches what it names")
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    # A datanode deletes what the namenode tells it to when it next says that it is alive.
    seconds = {"dfs.heartbeat.interval": 1, "dfs.namenode.redundancy.interval.seconds": 1}
    given = [
        word
        for name, value in {**seconds, "hdfs.minidfs.basedir": folder}.items()
        for word in ("-D", f"{name}={value}")
    ]
    asked = [
        str(java),
        "-Xmx256m",
        "-cp",
        os.environ["HADOOP_CLASS_PATH"],
        "org.apache.hadoop.test.MiniDFSClusterManager",
        *given,
    ]
    told = folder / "details.json"
    with _running([*asked, "-format", "-writeDetails", str(told)], told, r'"namenode_port":\s*(\d+)') as port:
        settings = {"HADOOP_CONF_DIR": _core_site(folder / "conf", port)}
        with _environment("HADOOP_", HADOOP_CLASS_PATH=os.environ["HADOOP_CLASS_PATH"], **settings):
            yield _hadoop(folder, port)


def _hadoop(folder: Path, port: str) -> Store:
    from hdfs_native.fsspec import HdfsFileSystem

    class Hdfs(HdfsFileSystem):
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return f"/{path.strip('/')}"  # theirs ends at a question mark

    hadoop = Hdfs("127.0.0.1", int(port), skip_instance_cache=True)

    @contextmanager
    def refusing() -> Iterator[None]:
        hadoop.client.set_permission("/captures", 0o700)
        try:
            with _environment("HADOOP_USER_NAME", HADOOP_USER_NAME="stranger"):
                yield
        finally:
            hadoop.client.set_permission("/captures", 0o755)

    def blocks() -> int:
        return sum(
            not name.endswith(".meta") for _, _, names in os.walk(folder) for name in names if name.startswith("blk_")
        )

    def files() -> int:
        return sum(status.length > 0 for status in hadoop.client.list_status("/", True) if not status.isdir)

    return Store(
        fs.PyFileSystem(fs.FSSpecHandler(hadoop)), root="hdfs:///{}", endpoint="HADOOP_CONF_DIR",
        credentials="HADOOP_CONF_DIR", unreachable="Connection refused", gone="All DataNodes failed",
        refused="AccessControlException: Permission denied: user=stranger", refusing=refusing,
        nowhere=_core_site(folder / "nowhere", NOWHERE.rpartition(":")[2]),
        forgotten=lambda: wait_until(lambda: blocks() == files(), "the datanode to delete a block"),
    )  # fmt: skip


def _core_site(folder: Path, port: str) -> str:
    folder.mkdir()
    default = f"<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property>"
    (folder / "core-site.xml").write_text(f"<configuration>{default}</configuration>")
    return str(folder)


def azure_token(permissions: str = "rl") -> str:
    """An account's token for Azurite, as Azure's tools print it: without a question mark."""
    said = {
        "sp": permissions,
        "ss": "b",
        "srt": "sco",
        "se": "2100-01-01T00:00:00Z",
        "spr": "https,http",
        "sv": "2020-08-04",
    }
    signed = "\n".join([ACCOUNT, said["sp"], said["ss"], said["srt"], "", said["se"], "", said["spr"], said["sv"], ""])
    digest = hmac.new(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256).digest()
    return urlencode({**said, "sig": base64.b64encode(digest).decode()})


@contextmanager
def _environment(others: str, **settings: str) -> Iterator[None]:
    """These settings, and no others of that beginning."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(others)]:
            patch.delenv(name)
        for name, value in settings.items():
            patch.setenv(name, value)
        yield


def _program(name: str, variable: str, remedy: str) -> str:
    program = os.environ.get(variable) or shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} on PATH, and none in {variable}: `{remedy}` (CONTRIBUTING.md)")
    return program


@contextmanager
def _listening(command: list[str], folder: Path) -> Iterator[str]:
    """Host and port that a program says it listens on."""
    with _running(command, folder / "said.txt", r"(?:listens on|started at) http://([\d.]+:\d+)") as host:
        yield host


@contextmanager
def _running(command: list[str], told: Path, pattern: str) -> Iterator[str]:
    """What a program tells of itself in a file, which may be its output."""
    said = told.parent / "said.txt"
    with said.open("wb") as output:
        process = subprocess.Popen(command, cwd=told.parent, stdout=output, stderr=subprocess.STDOUT)

    def told_or_ended() -> Any:
        return (told.exists() and re.search(pattern, told.read_text())) or process.poll() is not None

    with process:
        try:
            found = wait_until(told_or_ended, f"{command[0]} to listen")
            assert isinstance(found, re.Match), said.read_text()
            yield found[1]
        finally:
            process.terminate()
