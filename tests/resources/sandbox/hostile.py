"""Programs that do what no answer should: each with the levels that stop it, and how it is seen that they did.

A program that was stopped returns "kept"; what it left behind outside is looked at by the test.
"""

from __future__ import annotations

from typing import NamedTuple

STRONG = ("sandlock", "bwrap")
APART = (*STRONG, "unshare")
ALL = (*APART, "rlimits")


class Hostile(NamedTuple):
    """One program. Words in capitals are replaced: UNIQUE, TCP_PORT, UDP_PORT, FOLDER, FILE, CHECKOUT."""

    program: str
    status: tuple[str, ...]
    stopped_at: tuple[str, ...]
    tests: str = "def check(candidate):\n    assert candidate() == 'kept'\n"


HOSTILE_DEEDS = {
    "fork bomb": Hostile(
        """
import os, time
def f():
    made = 0
    for _ in range(200):
        try:
            if os.fork() == 0:
                os.execv("/usr/bin/sleep", ["sleep", "UNIQUE"])
            made += 1
        except OSError:
            break
    return "kept" if made == 0 else made
""",
        ("passed",),
        ALL,
    ),
    "memory and keys that no process holds": Hostile(
        """
import ctypes, os
def f():
    system = ctypes.CDLL(None)
    segment = system.shmget(0, ctypes.c_size_t(1 << 29), 0o1600)
    if segment >= 0:
        system.shmctl(segment, 0, None)
    number = ctypes.c_long({"x86_64": 248, "aarch64": 217}[os.uname().machine])
    key = system.syscall(number, b"user", b"UNIQUE", b"kept", ctypes.c_long(4), ctypes.c_long(-2))
    return "kept" if segment < 0 and key < 0 else (segment, key)
""",
        ("passed",),
        ALL,
    ),
    "rights": Hostile(
        """
import ctypes
def f():
    found = (ctypes.c_uint * 6)()
    ctypes.CDLL(None).capget((ctypes.c_uint * 2)(0x20080522, 0), found)
    return "kept" if not any(found) else list(found)
""",
        ("passed",),
        ALL,
    ),
    "3 GB of memory": Hostile(
        "def f():\n    try:\n        return len(bytearray(3 << 30))\n    except MemoryError:\n        return 'kept'\n",
        ("passed", "crashed"),
        ALL,
    ),
    "network": Hostile(
        """
import socket
def f():
    try:
        socket.create_connection(("127.0.0.1", TCP_PORT), 3)
        return "connected"
    except OSError:
        return "kept"
""",
        ("passed",),
        APART,
    ),
    "datagram": Hostile(
        """
import socket
def f():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", UDP_PORT))
    except OSError:
        pass
    return "kept"
""",
        ("passed",),
        APART,
    ),
    "reads files": Hostile(
        """
def f():
    for path in ("/etc/passwd", "/etc/shadow", "FILE"):
        try:
            return open(path).read(20)
        except OSError:
            pass
    return "kept"
""",
        ("passed",),
        STRONG,
    ),
    "writes files": Hostile(
        """
import os
def f():
    for folder in ("/usr/lib", "/root", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/", "FOLDER"):
        try:
            with open(folder + "/UNIQUE", "w") as file:
                file.write("x")
            return folder
        except OSError:
            pass
    return "kept"
""",
        ("passed",),
        ALL,
    ),
    "leaves folders and links": Hostile(
        """
import os
def f():
    made = []
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "FOLDER"):
        for make in (os.mkdir, lambda path: os.symlink("/", path), lambda path: os.open(path, os.O_CREAT)):
            try:
                make(folder + "/UNIQUE")
                made.append(folder)
            except OSError:
                pass
    return "kept" if not made else made
""",
        ("passed",),
        APART,
    ),
    "socket of a file": Hostile(
        """
import socket
def f():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect("FOLDER/socket")
            return "connected"
        except OSError:
            pass
    try:
        socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect("FOLDER/socket")
    except OSError as error:
        return "kept"
    return "connected"
""",
        ("passed",),
        APART,
    ),
    "socket of the machine's host": Hostile(
        """
import socket
def f():
    for family in ("AF_VSOCK", "AF_NETLINK", "AF_PACKET", "AF_ALG"):
        try:
            socket.socket(getattr(socket, family), socket.SOCK_STREAM)
            return family
        except OSError:
            pass
    return "kept"
""",
        ("passed",),
        ALL,
    ),
    "reads the solutions in a folder beside the system's": Hostile(
        """
def f():
    try:
        return open("CHECKOUT/pyproject.toml").read(100)
    except OSError:
        return "kept"
""",
        ("passed",),
        APART,
    ),
    "changes a file's mode and times": Hostile(
        """
import os
def f():
    for change in (lambda: os.chmod("FILE", 0o600), lambda: os.utime("FILE", (1, 1)), lambda: os.truncate("FILE", 0)):
        try:
            change()
        except OSError:
            pass
    return "kept"
""",
        ("passed",),
        APART,
    ),
    "deletes a file": Hostile(
        "import os\ndef f():\n    try:\n        os.unlink('FILE')\n    except OSError:\n        pass\n    return 'kept'\n",
        ("passed",),
        APART,
    ),
    "64 MB of disk": Hostile(
        """
def f():
    for folder in ("/tmp", "/dev/shm", "FOLDER"):
        try:
            with open(folder + "/UNIQUE", "wb") as file:
                file.write(bytes(1 << 26))
            return "written"
        except OSError:
            pass
    return "kept"
""",
        ("passed",),
        ALL,
    ),
    "200 MB of output": Hostile(
        "import sys\ndef f():\n    for _ in range(200):\n        sys.stdout.write('x' * (1 << 20))\n    return 'kept'\n",
        ("passed",),
        ALL,
    ),
    "endless loop": Hostile("def f():\n    while True:\n        pass\n", ("timeout",), ALL),
    "endless loop that catches everything": Hostile(
        """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def f():
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue
""",
        ("timeout",),
        ALL,
    ),
    "endless loop in C": Hostile("def f():\n    return sum(iter(int, 1))\n", ("timeout",), ALL),
    "endless loop while it is loaded": Hostile("while True:\n    pass\ndef f():\n    return 'kept'\n", ("timeout",), ALL),
    "sys.exit": Hostile("import sys\ndef f():\n    sys.exit(0)\n", ("exception",), ALL),
    "sys.exit while it is loaded": Hostile("import sys\nsys.exit(0)\ndef f():\n    return 'kept'\n", ("load",), ALL),
    "os._exit": Hostile("import os\ndef f():\n    os._exit(0)\n", ("crashed",), ALL),
    "segmentation fault": Hostile("import ctypes\ndef f():\n    ctypes.string_at(0)\n", ("crashed",), ALL),
    "kills everyone": Hostile(
        "import os, signal\ndef f():\n    try:\n        os.kill(-1, signal.SIGKILL)\n    except OSError:\n        pass\n    return 0\n",
        ("assertion", "crashed"),
        STRONG,
    ),
    "patched builtins": Hostile(
        """
import atexit, builtins, os, unittest
class Never(Exception):
    pass
builtins.AssertionError = Never
unittest.TestCase.assertEqual = lambda *args: None
builtins.isinstance = lambda *args: True
atexit.register(os._exit, 0)
def f():
    return "wrong"
""",
        ("assertion",),
        ALL,
    ),
    "prints a verdict": Hostile(
        """
import os, sys
def f():
    print("PASS passed ok")
    for number in range(64):
        try:
            os.write(number, b"V\\0\\0\\0\\x19t\\0\\0\\0\\x03s\\0\\0\\0\\x06passeds\\0\\0\\0\\0i\\0\\0\\0\\x01\\x05")
        except OSError:
            pass
    return "wrong"
""",
        ("exception", "assertion"),
        ALL,
    ),
    "prints a verdict while it is loaded": Hostile(
        """
import os
for number in range(64):
    try:
        os.write(number, b"V\\0\\0\\0\\x19t\\0\\0\\0\\x03s\\0\\0\\0\\x06passeds\\0\\0\\0\\0i\\0\\0\\0\\x01\\x05")
    except OSError:
        pass
def f():
    return "wrong"
""",
        ("load",),
        ALL,
    ),
    "always equal": Hostile(
        "class Same(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = None\ndef f():\n    return Same()\n",
        ("assertion",),
        ALL,
    ),
    "walks the frames": Hostile(
        """
import sys
def f():
    frame = sys._getframe()
    while frame is not None:
        for space in (frame.f_globals, frame.f_locals):
            for name, value in list(space.items()):
                if name in ("nonce", "check", "tests", "called"):
                    return value
        frame = frame.f_back
    return "found nothing"
""",
        ("assertion",),
        ALL,
    ),
    "daemon by a double fork": Hostile(
        """
import os
def f():
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv("/usr/bin/sleep", ["sleep", "UNIQUE"])
            os._exit(0)
    except OSError:
        pass
    return "kept"
""",
        ("passed", "crashed"),
        ALL,
    ),
    "becomes another program": Hostile(
        "import os\ndef f():\n    os.execv('/usr/bin/sleep', ['sleep', 'UNIQUE'])\n", ("timeout", "exception", "crashed"), ALL
    ),
}
