"""Calls of a thread that do nothing, or wait for an answer.

Sources: seccomp(2); seccomp_unotify(2); linux/bpf_common.h, which names the codes of instructions.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import socket
import struct
import sys
from dataclasses import dataclass
from fcntl import ioctl
from typing import Final, NamedTuple


class _Numbers(NamedTuple):
    """The numbers of calls."""

    listen: int
    accept4: int
    seccomp: int


_MACHINES: Final = {"x86_64": _Numbers(50, 288, 317), "aarch64": _Numbers(201, 242, 277)}
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_SET_MODE_FILTER: Final = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER: Final = 8
_SECCOMP_IOCTL_NOTIF_RECV: Final = 0xC0502100
_SECCOMP_IOCTL_NOTIF_SEND: Final = 0xC0182101
#: `struct seccomp_notif`: id, process, flags; number, machine, address and arguments of the call.
_NOTIFICATION: Final = struct.Struct("QIIiIQ6Q")
#: `struct seccomp_notif_resp`: id, value, error, flags.
_ANSWER: Final = struct.Struct("QqiI")
#: `struct sockaddr_in`: family; port and address in the order of the network, and nothing.
_ADDRESS: Final = struct.pack("=H", socket.AF_INET) + struct.pack(">H", 1) + socket.inet_aton("127.0.0.1") + bytes(8)

_LOAD_NUMBER: Final = (0x20, 0, 0, 0)
_IF_EQUAL, _RETURN = 0x15, 0x06
_ALLOWED: Final = (_RETURN, 0, 0, 0x7FFF0000)
_SUCCEEDS: Final = (_RETURN, 0, 0, 0x00050000)
_WAITS: Final = (_RETURN, 0, 0, 0x7FC00000)


def can_hold() -> bool:
    """Whether calls can be held on this system: Linux, on a machine whose call numbers are known here."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


@dataclass(frozen=True, slots=True)
class HeldCalls:
    """The calls of `accept4` that wait."""

    _descriptor: int

    def give(self, connection: socket.socket, seconds: float) -> None:
        """Answers the next `accept4` with a connection, which it owns from now on. Raises TimeoutError."""
        connection.setblocking(False)
        while not self._is_given(connection.fileno(), seconds):
            pass
        connection.detach()

    def _is_given(self, descriptor: int, seconds: float) -> bool:
        """Waits for a call and answers it. False if the call no longer waited: a signal may have interrupted it."""
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        if not any(event & select.POLLIN for _, event in waiting.poll(seconds * 1000)):
            raise TimeoutError(f"nobody accepts a connection in {seconds:g} s")
        notification = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._descriptor, _SECCOMP_IOCTL_NOTIF_RECV, notification)
            number, _, _, _, _, _, _, address, length, *_ = _NOTIFICATION.unpack(notification)
            ctypes.memmove(address, _ADDRESS, len(_ADDRESS))
            ctypes.memmove(length, struct.pack("I", len(_ADDRESS)), 4)
            ioctl(self._descriptor, _SECCOMP_IOCTL_NOTIF_SEND, _ANSWER.pack(number, descriptor, 0, 0))
        except FileNotFoundError:
            return False
        return True

    def release(self) -> None:
        """Lets all waiting and all later calls fail."""
        os.close(self._descriptor)


def hold_calls() -> HeldCalls:
    """From now on, in this thread and in those that it starts, `listen` does nothing, and `accept4` waits.

    Raises OSError where the system does not offer that.
    """
    numbers = _MACHINES[platform.machine()]
    code = (
        _LOAD_NUMBER,
        (_IF_EQUAL, 2, 0, numbers.listen),
        (_IF_EQUAL, 2, 0, numbers.accept4),
        _ALLOWED,
        _SUCCEEDS,
        _WAITS,
    )
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    packed = struct.pack("HP", len(code), ctypes.addressof(program))  # struct sock_fprog
    libc, zero = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero))
    return HeldCalls(
        _checked(
            libc.syscall(
                ctypes.c_long(numbers.seccomp),
                ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
                ctypes.c_ulong(_SECCOMP_FILTER_FLAG_NEW_LISTENER),
                ctypes.c_char_p(packed),
            )
        )
    )


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
