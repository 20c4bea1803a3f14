"""Levels of isolation for a program, best first, and how to start a process at each."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import itertools
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from resources.sandbox.worker import encode_value

LEVELS = ("sandlock", "bwrap")
NOBODY_UID = 65534
MAX_MEMORY = 2**30
"""Maximum bytes of a process's address space."""
_MAX_TASKS = 16
"""Maximum number of processes and threads at a level that does not count those of other users of this machine."""
_WORKER_SOURCE = Path(__file__).with_name("worker.py").read_text(encoding="utf-8")
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
_SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
_SYSTEM_FOLDERS = ("/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
_NEITHER_LANDLOCK_NOR_WE_WANT = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
    *("removexattr", "lremovexattr", "fremovexattr", "mknod", "settimeofday", "clock_settime", "quotactl", "acct", "syslog"),
)
"""System calls that Landlock allows, but that could change mode, owner and times of any file."""
_CHANGES_USER = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID."""
_OWN_USERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python interpreter that runs programs."""

    path: str
    folder: str | None
    """A folder that must be readable in addition to the system's folders; None: none."""


@dataclass(frozen=True, slots=True)
class StartWay:
    """A way to start a process at a level."""

    level: str
    command: tuple[str, ...]
    """The command before the interpreter."""
    own_user: bool = False
    """Whether the process itself must change to a user that no other process has."""
    drops_to_nobody: bool = False
    """Whether the process itself must change to the user `nobody`."""
    dies_with_parent: bool = False
    """Whether the process itself must ensure that it ends with this one."""
    most_tasks: int | None = _MAX_TASKS
    """Maximum number of processes and threads of its user; None: no limit, since other processes would count."""


class StartedProcess:
    """A started process: its number, two pipe ends, and its termination."""

    def __init__(self, number: int, stdin: IO[bytes], stdout: IO[bytes], kill: Callable[[], object]) -> None:
        self.number, self._files, self._kill = number, (stdin, stdout), kill
        self.stdin, self.stdout = stdin.fileno(), stdout.fileno()

    def end(self) -> None:
        """Kill the process with its descendants, and wait for it."""
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        self._kill()


@functools.cache
def find_interpreter() -> Interpreter:
    """Return the system's Python, or the running one if the system has none."""
    for path in _SYSTEM_PYTHONS:
        if Path(path).exists() and Path(path).resolve().is_relative_to("/usr"):
            return Interpreter(path, None)
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    return Interpreter(executable, None if executable.startswith("/usr/") else os.path.realpath(sys.base_prefix))


def list_ways(level: str) -> list[StartWay]:
    """Return the ways of a level, best first."""
    if level == "bwrap":
        return _list_bwrap_ways()
    root = can_change_user()  # a change of user removes sandlock's guarantee that no process outlives this one
    methods = [StartWay(level, (), own_user=True, dies_with_parent=True)] if root else []
    return [*methods, StartWay(level, (), drops_to_nobody=root, dies_with_parent=root, most_tasks=None)]


def _list_bwrap_ways() -> list[StartWay]:
    name = shutil.which("bwrap")
    if name is None:
        return []
    tree = ["--ro-bind", "/usr", "/usr", *_list_system_folders()]
    if folder := find_interpreter().folder:
        tree += ["--ro-bind", folder, folder]
    tree += ["--dev-bind", "/dev/null", "/dev/null", "--dir", "/tmp", "--chdir", "/tmp", "--remount-ro", "/"]  # noqa: S108
    common = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    users = StartWay("bwrap", (*_build_nobody_command(), name, "--unshare-all", *common, *tree, "--"))
    if not can_change_user():
        return [users]
    spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    change = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [users, StartWay("bwrap", (name, *spaces, *common, *change, *tree, "--"), own_user=True)]


def _list_system_folders() -> list[str]:
    arguments = []
    for folder in _SYSTEM_FOLDERS:
        path = Path(folder)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), folder]
        elif path.is_dir():
            arguments += ["--ro-bind", folder, folder]
    return arguments


def _build_nobody_command() -> list[str]:
    """Return the prefix with which root runs a command as nobody: root's processes are never limited."""
    if not can_change_user():
        return []
    return [
        shutil.which("setpriv") or "setpriv",
        f"--reuid={NOBODY_UID}",
        f"--regid={NOBODY_UID}",
        "--clear-groups",
        "--inh-caps=-all",
    ]


def start(method: StartWay, role: str, timeout_s: float, complaints: IO[bytes] | None = None) -> StartedProcess:
    """Start a worker in this role. Raises OSError or RuntimeError if it cannot start. `complaints`: file for its errors."""
    setting = (role, _build_limits(method, timeout_s), _choose_user(method), method.dies_with_parent, call_filter())
    command = [*method.command, find_interpreter().path, "-s", "-S", "-B", "-c", _WORKER_SOURCE, encode_value(setting).decode()]
    return _start_sandlock(command) if method.level == "sandlock" else _start_process(command, complaints)


def _choose_user(method: StartWay) -> int:
    """Return the user id, or -1 for the current one."""
    if method.own_user:
        return 1_879_048_192 + (os.getpid() * 4096 + next(_OWN_USERS) % 4096) % 2**28  # user ids that no convention assigns
    return NOBODY_UID if method.drops_to_nobody else -1


def _build_limits(method: StartWay, timeout_s: float) -> dict[str, int]:
    """Return limits: no file writing, no core, little memory; the check's wall limit precedes that of CPU seconds."""
    seconds = int(timeout_s) + 2
    limits = {"CPU": seconds, "AS": MAX_MEMORY, "FSIZE": 0, "NOFILE": 64, "CORE": 0}
    return limits if method.most_tasks is None else {**limits, "NPROC": method.most_tasks}


def _start_process(command: Sequence[str], complaints: IO[bytes] | None) -> StartedProcess:
    process = subprocess.Popen(  # noqa: S603 - without a shell; the program goes in by a pipe
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints or subprocess.DEVNULL,
        bufsize=0,
        env=_ENVIRONMENT,
        cwd="/",
        start_new_session=True,
    )

    def kill() -> None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    assert process.stdin is not None
    assert process.stdout is not None
    return StartedProcess(process.pid, process.stdin, process.stdout, kill)


def _start_sandlock(command: list[str]) -> StartedProcess:
    sandlock: Any = importlib.import_module("sandlock")
    folders = [*_SYSTEM_FOLDERS, *filter(None, [find_interpreter().folder])]
    sandbox = sandlock.Sandbox(
        fs_readable=["/usr", *(folder for folder in folders if Path(folder).exists())],
        fs_writable=["/dev/null"],
        extra_deny_syscalls=_NEITHER_LANDLOCK_NOR_WE_WANT,
        clean_env=True,
        env=_ENVIRONMENT,
        max_processes=1,
        cwd="/",
    )
    pipe, nowhere = sandlock.StdioMode.PIPED, sandlock.StdioMode.NULL
    process = sandbox.popen(command, pipe, pipe, nowhere)

    def kill() -> None:
        process.kill()
        process.wait(60)

    return StartedProcess(process.pid, process.stdin, process.stdout, kill)


def find_sandlock_problem() -> str | None:
    """Return why sandlock cannot be used here, or None if nothing is known."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    try:
        sandlock: Any = importlib.import_module("sandlock")
    except (ImportError, OSError) as error:
        return f"the package sandlock cannot be loaded: {error}"
    abi, minimum = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
    if abi < minimum:
        return f"it needs Landlock ABI {minimum} (Linux 6.12), and this kernel has {'none' if abi < 0 else abi}"
    return None


@functools.cache
def can_change_user() -> bool:
    """Return whether this process is root and can run others as nobody. In some containers root is the only user, or lacks the right."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    try:
        n_users = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text(encoding="utf-8").splitlines())
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except (OSError, ValueError, IndexError):
        return True
    rights = int(status.partition("CapEff:")[2].split()[0], 16)
    return n_users > NOBODY_UID and rights & _CHANGES_USER == _CHANGES_USER


_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _AND, _IS_EQUAL, _FROM, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
"""Operations of the kernel's filter programs, on one 32-bit number."""
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24
_OTHER_NUMBERS_FROM = 0x40000000
"""On x86-64 the same calls have other numbers from this one on."""
_NEW_THREAD = 0x00010000
_INTERNET, _INTERNET_6, _DATAGRAM = 2, 10, 2
"""Socket families that a process may create, whether or not it has its own network; and a socket type."""
_UNKNOWN_CALLS = (425, 435)
"""`io_uring_setup` and `clone3`, whose arguments a filter cannot inspect; programs fall back to `clone` for the second."""


class _Machine(NamedTuple):
    mark: int
    """The kernel's name of the machine."""
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


def call_filter() -> bytes:
    """Return the filter's instructions, eight bytes each; empty for a machine not listed here.

    It refuses further processes (not threads), memory shared by name or key, which counts for no process, keys stored by the kernel,
    sockets of any family but the internet (Unix sockets, and VSOCK, by which a virtual machine reaches its host), and calls that inspect
    other processes or change mounts.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return b""
    refuse, retry, unknown = (_REFUSE | code for code in (errno.EPERM, errno.EAGAIN, errno.ENOSYS))
    # An instruction has an operation, the numbers of instructions to skip if it holds and if not, and a number.
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_IS_EQUAL, 1, 0, machine.mark), (_RETURN, 0, 0, refuse), (_LOAD, 0, 0, _NUMBER_AT)]
    steps += [(_FROM, 0, 1, _OTHER_NUMBERS_FROM), (_RETURN, 0, 0, refuse)]
    for number in machine.refused:
        steps += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, retry if number in (57, 58) and machine.clone == 56 else refuse)]
    for number in _UNKNOWN_CALLS:
        steps += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, unknown)]
    steps += [(_IS_EQUAL, 0, 4, machine.clone), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_ANY_BIT, 1, 0, _NEW_THREAD)]
    steps += [(_RETURN, 0, 0, retry), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_IS_EQUAL, 0, 5, machine.socket), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_IS_EQUAL, 2, 0, _INTERNET)]
    steps += [(_IS_EQUAL, 1, 0, _INTERNET_6), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_IS_EQUAL, 0, 4, machine.socketpair), (_LOAD, 0, 0, _SECOND_ARGUMENT_AT), (_AND, 0, 0, 0xF)]
    steps += [(_IS_EQUAL, 0, 1, _DATAGRAM), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
