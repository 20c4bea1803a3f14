"""Programs that do what no answer should. Words in capitals are replaced: UNIQUE, TCP_PORT, UDP_PORT, FOLDER, FILE, CHECKOUT."""

from __future__ import annotations

DEEDS = {
    "fork bomb": r"""
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
    "memory and keys that no process holds": r"""
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
    "rights": r"""
import ctypes
def f():
    found = (ctypes.c_uint * 6)()
    ctypes.CDLL(None).capget((ctypes.c_uint * 2)(0x20080522, 0), found)
    return "kept" if not any(found) else list(found)
""",
    "3 GB of memory": r"""def f():
    try:
        return len(bytearray(3 << 30))
    except MemoryError:
        return 'kept'
""",
    "network": r"""
import socket
def f():
    try:
        socket.create_connection(("127.0.0.1", TCP_PORT), 3)
        return "connected"
    except OSError:
        return "kept"
""",
    "datagram": r"""
import socket
def f():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", UDP_PORT))
    except OSError:
        pass
    return "kept"
""",
    "reads files": r"""
def f():
    for path in ("/etc/passwd", "/etc/shadow", "FILE"):
        try:
            return open(path).read(20)
        except OSError:
            pass
    return "kept"
""",
    "64 MB of disk": r"""
def f():
    for path in ("/tmp/UNIQUE", "/dev/shm/UNIQUE", "FOLDER/UNIQUE", "FILE"):
        try:
            open(path, "ab", buffering=0).write(bytes(1 << 26))
            return path
        except OSError:
            pass
    return "kept"
""",
    "leaves folders and links": r"""
import os
def f():
    made = []
    for folder in ("/usr/lib", "/root", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/", "FOLDER"):
        for make in (os.mkdir, lambda path: os.symlink("/", path), lambda path: os.open(path, os.O_CREAT)):
            try:
                make(folder + "/UNIQUE")
                made.append(folder)
            except OSError:
                pass
    return "kept" if not made else made
""",
    "socket of a file": r"""
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
    "socket of the machine's host": r"""
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
    "reads the solutions in a folder beside the system's": r"""
def f():
    for path in ("CHECKOUT/pyproject.toml", "FILE"):
        try:
            return open(path).read(100)
        except OSError:
            pass
    return "kept"
""",
    "changes a file's mode and times": r"""
import os
def f():
    for change in (lambda: os.chmod("FILE", 0o600), lambda: os.utime("FILE", (1, 1)), lambda: os.truncate("FILE", 0)):
        try:
            change()
        except OSError:
            pass
    return "kept"
""",
    "deletes a file": r"""import os
def f():
    try:
        os.unlink('FILE')
    except OSError:
        pass
    return 'kept'
""",
    "200 MB of output": r"""import sys
def f():
    for _ in range(200):
        sys.stdout.write('x' * (1 << 20))
    return 'kept'
""",
}
"""By name: the function returns "kept" where it was kept from it. What it left behind outside is looked at by the test."""

PROGRAMS = {
    "endless loop": (("timeout",), "def f():\n    while True:\n        pass\n"),
    "endless loop that catches everything": (
        ("timeout",),
        r"""
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
    ),
    "sys.exit": (("exception",), "import sys\ndef f():\n    sys.exit(0)\n"),
    "sys.exit while it is loaded": (
        ("load",),
        r"""import sys
sys.exit(0)
def f():
    return 'kept'
""",
    ),
    "os._exit": (("crashed",), "import os\ndef f():\n    os._exit(0)\n"),
    "segmentation fault": (("crashed",), "import ctypes\ndef f():\n    ctypes.string_at(0)\n"),
    "kills everyone": (
        ("assertion", "crashed"),
        r"""import os, signal
def f():
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
    return 0
""",
    ),
    "patched builtins": (
        ("assertion",),
        r"""
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
    ),
    "prints a verdict": (
        ("exception", "assertion"),
        r"""
import os, sys
def f():
    print("PASS passed ok")
    for number in range(64):
        try:
            os.write(number, b"V\0\0\0\x19t\0\0\0\x03s\0\0\0\x06passeds\0\0\0\0i\0\0\0\x01\x05")
        except OSError:
            pass
    return "wrong"
""",
    ),
    "always equal": (
        ("assertion",),
        r"""class Same(str):
    def __eq__(self, other):
        return True
    __hash__ = None
def f():
    return Same()
""",
    ),
    "walks the frames": (
        ("assertion",),
        r"""
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
    ),
    "daemon by a double fork": (
        ("passed", "crashed"),
        r"""
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
    ),
    "becomes another program": (
        ("timeout", "exception", "crashed"),
        "import os\ndef f():\n    os.execv('/usr/bin/sleep', ['sleep', 'UNIQUE'])\n",
    ),
    "a value of 200 MB": (("exception", "crashed"), "def f():\n    return b'x' * (200 << 20)\n"),
    "a million levels": (
        ("exception", "crashed"),
        r"""def f():
    found = []
    for _ in range(10**6):
        found = [found]
    return found
""",
    ),
    "data without end": (
        ("exception", "timeout", "crashed"),
        r"""
import os
def f():
    while True:
        for number in range(3, 64):
            try:
                os.write(number, b"A\0\0\0\x01N" * 10000)
            except OSError:
                pass
""",
    ),
    "answers without end": (
        ("exception",),
        r"""
import os, struct, sys
def f():
    frame = sys._getframe()
    while "pipe" not in frame.f_locals:
        frame = frame.f_back
    pipe = frame.f_locals["pipe"]
    slow = b"".join(b"i\0\0\0\x0a" + (n * (2**61 - 1)).to_bytes(10, "big") for n in range(40000))
    pipe.send(b"A", b"t\0\0\0\x02e" + struct.pack(">I", 40000) + slow + b"N")
    while True:
        pipe.send(b"A", b"N" * (1 << 20))
""",
    ),
    "an error of 16 MB while it is loaded": (
        ("load",),
        r"""
import struct, sys
frame = sys._getframe()
while "pipe" not in frame.f_locals:
    frame = frame.f_back
number = (1 << 24) - 5
frame.f_locals["pipe"].send(b"L", b"l" + struct.pack(">I", number) + b"N" * number)
""",
    ),
    "an error that cannot be told": (
        ("exception",),
        r"""class Odd(Exception):
    def __str__(self):
        raise SystemExit
def f():
    raise Odd
""",
    ),
}
"""By name: the statuses that one may end with, and a program whose process ends, or which is after the verdict itself."""
