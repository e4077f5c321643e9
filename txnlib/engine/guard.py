"""Starts the embedded engine where only this process can reach it.

The engine wants to listen on the loopback, and anybody who reaches it runs code as the user of the audit. So a thread
starts it in which `listen` does nothing and `accept4` waits for us: it is given one connection, that of this process,
which comes through a socket in a private folder. No port is open at any time.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from txnlib.engine.held_calls import HeldCalls, can_hold, hold_calls

HOST: Final = "127.0.0.1"
_NAME: Final = "engine.socket"
#: Process, user and group at the other end.
_CREDENTIALS: Final = struct.Struct("3i")


class OpenPortError(Exception):
    """This system cannot keep a port closed."""


@dataclass(frozen=True, slots=True)
class Door:
    """The only way to a server. `folder`: a folder that only this user may enter."""

    _folder: int
    _listener: socket.socket
    _held: HeldCalls

    @property
    def path(self) -> str:
        """Where to connect. It is short: an address has 107 bytes."""
        return _path(self._folder)

    def let_in(self, seconds: float) -> None:
        """Waits for a connection of this process, and gives it to the server. Nobody comes after it.

        Raises TimeoutError.
        """
        self._listener.settimeout(seconds)
        with self._listener:
            connection, _ = self._listener.accept()
            while _process_of(connection) != os.getpid():
                connection.close()
                connection, _ = self._listener.accept()
        self._held.give(connection, seconds)

    def close(self) -> None:
        """Lets the server go on to its end."""
        self._listener.close()
        os.close(self._folder)
        self._held.release()


def start_closed(start: Callable[[], int], folder: Path) -> Door:
    """Calls what starts a server of this process and returns its port, where nobody ever listens.

    Raises OpenPortError where this system cannot do that.
    """
    if not can_hold():
        raise OpenPortError("its calls are not known")
    with ThreadPoolExecutor(1) as thread:
        held, port = thread.submit(_started, start).result()
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    door = Door(directory, listener, held)
    try:
        if _is_open(port):
            raise OpenPortError("the server listens in another thread")
        (folder / _NAME).unlink(missing_ok=True)
        listener.bind(door.path)
        listener.listen()
    except BaseException:
        door.close()
        raise
    return door


def _started(start: Callable[[], int]) -> tuple[HeldCalls, int]:
    try:
        held = hold_calls()
    except OSError as error:
        raise OpenPortError(f"a thread's calls cannot be held: {error.strerror}") from error
    try:
        return held, start()
    except BaseException:
        held.release()
        raise


def _path(folder: int) -> str:
    return f"/proc/self/fd/{folder}/{_NAME}"


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0


def _process_of(connection: socket.socket) -> int:
    """The process at the other end of a connection."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[0])


def has_neighbours() -> bool:
    """Whether processes of other users than root are seen on this machine, or could be there without being seen."""
    try:
        if not Path("/proc/1").exists():
            return True
        owners = {_owner(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:
        return True
    return bool(owners - {None, 0, os.getuid()})


def _owner(process: str) -> int | None:
    """The user of a process; None if it has ended."""
    with suppress(OSError):
        return os.stat(f"/proc/{process}").st_uid
    return None
