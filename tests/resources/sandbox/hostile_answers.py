"""Programs whose answers are what harms: too large, too many, or none that can be told."""

from __future__ import annotations

from tests.resources.sandbox.hostile import ALL, Hostile

HOSTILE_ANSWERS = {
    "a value of 200 MB": Hostile("def f():\n    return b'x' * (200 << 20)\n", ("exception", "crashed"), ALL),
    "a million levels": Hostile(
        "def f():\n    found = []\n    for _ in range(10**6):\n        found = [found]\n    return found\n",
        ("exception", "crashed"),
        ALL,
    ),
    "data without end": Hostile(
        """
import os
def f():
    while True:
        for number in range(3, 64):
            try:
                os.write(number, b"A\\0\\0\\0\\x01N" * 10000)
            except OSError:
                pass
""",
        ("exception", "timeout", "crashed"),
        ALL,
    ),
    "answers without end": Hostile(
        """
import os, struct, sys
def f():
    frame = sys._getframe()
    while "pipe" not in frame.f_locals:
        frame = frame.f_back
    pipe = frame.f_locals["pipe"]
    slow = b"".join(b"i\\0\\0\\0\\x0a" + (n * (2**61 - 1)).to_bytes(10, "big") for n in range(40000))
    pipe.send(b"A", b"t\\0\\0\\0\\x02e" + struct.pack(">I", 40000) + slow + b"N")
    while True:
        pipe.send(b"A", b"N" * (1 << 20))
""",
        ("exception",),
        ALL,
    ),
    "an error of 16 MB while it is loaded": Hostile(
        """
import struct, sys
frame = sys._getframe()
while "pipe" not in frame.f_locals:
    frame = frame.f_back
number = (1 << 24) - 5
frame.f_locals["pipe"].send(b"L", b"l" + struct.pack(">I", number) + b"N" * number)
""",
        ("load",),
        ALL,
    ),
    "an error that cannot be told": Hostile(
        "class Odd(Exception):\n    def __str__(self):\n        raise SystemExit\ndef f():\n    raise Odd\n",
        ("exception",),
        ALL,
    ),
}
