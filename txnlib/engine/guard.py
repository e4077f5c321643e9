"""Closes the port of the embedded engine to everybody but this process.

The engine listens on the loopback, and whoever reaches it runs code as the user of the audit. So its listener is closed
as soon as our only connection stands: a filter drops every packet for it, while the accepted connection goes on. Then
the kernel's table of connections must show ours and no other. Source: socket(7), SO_ATTACH_FILTER.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from txnlib.errors import EngineError

#: Linux: attaches a classic BPF program to a socket.
_SO_ATTACH_FILTER: Final = 26
#: BPF_RET | BPF_K with 0: accept no byte of a packet, that is, drop it.
_DROP: Final = struct.pack("HBBI", 0x06, 0, 0, 0)
#: A client may reach the loopback of IPv4 by a socket of IPv6.
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


#: What precedes an address of IPv4 in one of IPv6.
_MAPPED: Final = bytes(10) + b"\xff\xff"


class Connection(NamedTuple):
    """A line of the kernel's table: both ends, and the inode of the near one (0 if no process has it)."""

    near: tuple[str, int]
    far: tuple[str, int]
    inode: int


def can_close() -> bool:
    """Whether this system can close a listener while its connections go on."""
    return sys.platform == "linux" and _TABLES[0].exists()


def close_to_others(port: int) -> None:
    """Closes the listener of this process at a port of the loopback.

    Raises EngineError if anybody else is connected.
    """
    for listener in _listeners(port):
        program = ctypes.create_string_buffer(_DROP)
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(program)))
        break
    else:
        raise EngineError("its port is not that of a listener of this process")
    if strangers := list(_strangers(port)):
        peers = ", ".join(sorted({f"{host}:{number}" for host, number in strangers}))
        raise EngineError(f"another process connected to its port before it was closed ({peers})")


def _listeners(port: int) -> Iterator[socket.socket]:
    """The listening sockets of this process at a port, each as a descriptor of our own."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as each:
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and each.getsockname()[1] == port:
                yield each


def _strangers(port: int) -> Iterator[tuple[str, int]]:
    """The far ends of connections to a port that are not of this process, those that have ended included."""
    table = [each for each in connections() if port in (each.near[1], each.far[1])]
    own = _own_inodes()
    ours = {each.near for each in table if each.far[1] == port and each.inode in own}
    for each in table:
        client = each.near if each.far[1] == port else each.far
        if client[1] and client not in ours:
            yield client


def connections() -> Iterator[Connection]:
    """The TCP connections of this machine, of every state."""
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            yield Connection(_address(fields[1]), _address(fields[2]), int(fields[9]))


def _address(text: str) -> tuple[str, int]:
    """`0100007F:9105`: words in the byte order of the machine. An address of IPv4 that is mapped counts as one."""
    host, port = text.split(":")
    words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
    packed = struct.pack(f"={len(words)}I", *words)
    return str(ip_address(packed[-4:] if packed[:-4] in (b"", _MAPPED) else packed)), int(port, 16)


def _own_inodes() -> set[int]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found
