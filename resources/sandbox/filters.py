"""The system calls that no program needs: a filter that the kernel asks before each call of a worker."""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _AND, _IS_EQUAL, _FROM, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
"""Operations of the kernel's filter machine, on one number of 32 bits."""
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24
_OTHER_NUMBERS_FROM = 0x40000000
"""On x86-64 the same calls have other numbers from here on."""
_NEW_THREAD = 0x00010000
_INTERNET, _INTERNET_6, _DATAGRAM = 2, 10, 2
"""Families of sockets that a process may make, where it has a network of its own or none; and a kind of socket."""
_UNKNOWN_CALLS = (425, 435)
"""`io_uring_setup` and `clone3`, which cannot be looked into: the second is then done by `clone`."""


class _Machine(NamedTuple):
    mark: int
    """What the kernel calls the machine."""
    refused: tuple[int, ...]
    clone: int
    socket: int
    socketpair: int


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        (29, 30, 31, 64, 68, 240, 248, 249, 250, 57, 58, 101, 165, 272, 308, 298, 319, 321, 323),
        clone=56,
        socket=41,
        socketpair=53,
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (194, 196, 195, 190, 186, 180, 217, 218, 219, 117, 40, 97, 268, 241, 279, 280, 282),
        clone=220,
        socket=198,
        socketpair=199,
    ),
}
"""In the order of both: shmget, shmat, shmctl, semget, msgget, mq_open, add_key, request_key, keyctl, (fork, vfork,) ptrace, mount, unshare,
setns, perf_event_open, memfd_create, bpf, userfaultfd."""


def call_filter(machine: str | None = None) -> bytes:
    """The filter's instructions, eight bytes each; empty for a machine whose calls are not listed here. None: this machine.

    Refused are further processes (threads are not), memory that is shared by name or key and counted with no process, keys that the
    kernel keeps, sockets of any family but the internet (those among the files, and VSOCK, by which a virtual machine reaches its
    host), and what looks into other processes or changes what is mounted.
    """
    known = _MACHINES.get(platform.machine() if machine is None else machine)
    if known is None:
        return b""
    refuse, again, unknown = (_REFUSE | one for one in (errno.EPERM, errno.EAGAIN, errno.ENOSYS))
    # An instruction is an operation, how many to pass over if it holds and if not, and a number.
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_IS_EQUAL, 1, 0, known.mark), (_RETURN, 0, 0, refuse), (_LOAD, 0, 0, _NUMBER_AT)]
    steps += [(_FROM, 0, 1, _OTHER_NUMBERS_FROM), (_RETURN, 0, 0, refuse)]
    for number in known.refused:
        steps += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, again if number in (57, 58) and known.clone == 56 else refuse)]
    for number in _UNKNOWN_CALLS:
        steps += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, unknown)]
    steps += [(_IS_EQUAL, 0, 4, known.clone), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_ANY_BIT, 1, 0, _NEW_THREAD)]
    steps += [(_RETURN, 0, 0, again), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_IS_EQUAL, 0, 5, known.socket), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_IS_EQUAL, 2, 0, _INTERNET)]
    steps += [(_IS_EQUAL, 1, 0, _INTERNET_6), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_IS_EQUAL, 0, 4, known.socketpair), (_LOAD, 0, 0, _SECOND_ARGUMENT_AT), (_AND, 0, 0, 0xF)]
    steps += [(_IS_EQUAL, 0, 1, _DATAGRAM), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
