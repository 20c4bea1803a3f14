"""Both processes of a check: the candidate, which has only the program, and the tester, which has the tests and calls it.

Its source is passed to a system interpreter (Python 3.8 or newer) with `-c`; it imports nothing of this project. Frames of one letter, four
bytes of length and a payload come in by standard input and go out by standard output. The payload is plain data in JSON: nothing made in
one process can act in the other.
"""

from __future__ import annotations

import json
import os
import struct
import sys

TYPE_CHECKING = False  # importing typing would slow the start
if TYPE_CHECKING:
    from typing import Any

DEEPEST_CROSSING = 100
"""Maximum nesting of lists in a value between the processes."""
LARGEST_FRAME = 2**24
"""Maximum bytes of one value between the processes; the process between them holds only one."""
LONGEST_WORDS = 300
BASE_TYPES = (int, float, complex, str, bytes, list, tuple, set, dict)
PLAIN_TYPES = frozenset((*BASE_TYPES, bool))
DECODERS: dict[str, Any] = {
    "b": bytes.fromhex,
    "c": lambda parts: complex(*parts),
    "d": dict,
    "e": set,
    "i": lambda digits: int(digits, 16),
    "t": tuple,
}
TESTS_FILE = "<tests>"


class NotTransferable(Exception):
    """A value that cannot cross, or invalid bytes."""


class LostCandidate(BaseException):
    """A fault of the tester: no verdict on the candidate."""


def encode_value(value: Any, *, as_base: bool = False) -> bytes:
    """Return plain data as JSON. Raises NotTransferable for any other value; `as_base`: read a subclass by its base's methods only."""
    text = json.dumps(_tag_value(value, 0, as_base), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _tag_value(value: Any, depth: int, as_base: bool) -> Any:
    """Return what JSON can hold: types that it lacks become a mapping of one letter (`DECODERS`)."""
    kind: Any = type(value)
    if as_base and kind not in PLAIN_TYPES:
        kind = next((base for base in BASE_TYPES if issubclass(kind, base)), kind)
    if depth > DEEPEST_CROSSING:
        raise NotTransferable("data nested too deeply")
    if value is None or kind is bool:
        return value
    if kind is int:
        # Long numbers in decimal digits would be refused.
        return int.__pos__(value) if int.bit_length(value) < 64 else {"i": int.__format__(value, "x")}
    if kind is float:
        return float.__pos__(value)
    if kind in (str, bytes) and kind.__len__(value) > LARGEST_FRAME:
        raise NotTransferable("a value of " + str(kind.__len__(value)) + " characters")
    if kind is str:
        return str.__str__(value)
    if kind is bytes:
        return {"b": bytes.hex(value)}
    if kind is complex:
        value = complex.__pos__(value)
        return {"c": [value.real, value.imag]}
    if kind is dict:
        return {"d": [[_tag_value(part, depth + 1, as_base) for part in pair] for pair in _list_items(value)]}
    if kind not in (list, tuple, set):
        raise NotTransferable("a value of type " + str(kind.__name__)[:80] + ", which is no plain data")
    parts = [_tag_value(part, depth + 1, as_base) for part in kind.__iter__(value)]
    return parts if kind is list else {"t" if kind is tuple else "e": parts}


def _list_items(value: Any) -> Any:
    """Return the pairs of a dict; those of an OrderedDict in its own order, which `dict.items` does not know."""
    base = getattr(sys.modules.get("collections"), "OrderedDict", None)
    return base.items(value) if base and issubclass(type(value), base) else dict.items(value)


def decode_value(raw: bytes) -> Any:
    """Return the value of `encode_value`. Raises NotTransferable for invalid bytes."""
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"), object_pairs_hook=_decode_tagged)
    except (ValueError, TypeError, KeyError, ArithmeticError, MemoryError, RecursionError):
        raise NotTransferable("bytes that are no plain data") from None


def _decode_tagged(pairs: Any) -> Any:
    ((letter, part),) = pairs
    return DECODERS[letter](part)


class Pipe:
    """The two pipe ends of this process, out of reach of `print` and `input`."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        devnull = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(devnull, standard)
        os.close(devnull)

    def send(self, letter: bytes, payload: bytes) -> None:
        remaining = memoryview(letter + struct.pack(">I", len(payload)) + payload)
        while remaining:
            remaining = remaining[os.write(self._out, remaining) :]

    def receive(self) -> tuple[Any, ...]:
        letter, size = struct.unpack(">cI", self._read(5))
        return letter, self._read(size)

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self._in, min(size, 1 << 20))
            if not part:
                os._exit(0)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def describe_message(error: BaseException) -> str:
    """Return an error's message, even if its class fails to give one."""
    try:
        return str.__str__(str(error))[:LONGEST_WORDS]
    except BaseException:
        return "what cannot be told"


def words(error: BaseException) -> str:
    """Return an error's kind and message."""
    return ": ".join(filter(None, (type(error).__name__[:80], describe_message(error))))[:LONGEST_WORDS]


def find_failed_line(error: BaseException, tests: str) -> str:
    """Return the line of the tests that raised the error, or "" if it was raised elsewhere."""
    number, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == TESTS_FILE:
            number = trace.tb_lineno
        trace = trace.tb_next
    return "".join(tests.split("\n")[number - 1 : number]).strip() if number else ""


def limit(limits: dict[str, int], uid: int, dies_with_parent: bool, seccomp: bytes) -> None:
    """Restrict this process: change the user, die with the parent, lower limits for good, filter system calls."""
    import ctypes
    import resource

    system = ctypes.CDLL(None, use_errno=True)
    if uid >= 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if dies_with_parent:
        system.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG; a change of user has cleared it
    for name, maximum in limits.items():
        number = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(number)[1]
        maximum = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        resource.setrlimit(number, (maximum, maximum))
    system.prctl(47, 4, 0, 0, 0)  # PR_CAP_AMBIENT
    system.capset(struct.pack("=II", 0x20080522, 0), bytes(24))
    system.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if seccomp:
        steps = ctypes.create_string_buffer(seccomp, len(seccomp))
        # PR_SET_SECCOMP; on a kernel without it the filter is left out.
        system.prctl(22, 2, struct.pack("@HP", len(seccomp) // 8, ctypes.addressof(steps)), 0, 0)


def candidate(pipe: Pipe, program: str, name: str) -> None:
    """Run the program, then answer calls of its function until the tester is done."""
    module = type(sys)("answer")
    sys.modules["answer"] = module
    try:
        code = compile(program, "<answer>", "exec", 0, True)
    except BaseException as error:
        return pipe.send(b"S", encode_value(words(error)))
    try:
        exec(code, module.__dict__)  # noqa: S102 - what this process is for
        function = module.__dict__[name]
    except BaseException as error:
        return pipe.send(b"L", encode_value(words(error)))
    pipe.send(b"O", b"")
    while True:
        payload = pipe.receive()[1]
        args, named = decode_value(payload)
        letter, reply_value = b"A", None
        try:
            reply_value = function(*args, **named)
        except BaseException as error:
            letter, reply_value = b"E", (type(error).__name__[:80], describe_message(error))
        try:
            state = encode_value((args, named), as_base=True)
            pipe.send(letter, encode_value((reply_value, None if state == payload else state), as_base=True))
        except NotTransferable as error:
            pipe.send(b"U", encode_value(words(error)))
        except BaseException as error:
            pipe.send(b"U", encode_value("a value that cannot be encoded: " + words(error)))


class CalledFunction:
    """The function as the tests see it: each call crosses to the candidate."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe, self.calls = pipe, 0

    def __call__(self, *args: object, **named: object) -> object:
        self.calls += 1
        try:
            payload = encode_value((list(args), named))
        except NotTransferable as error:
            raise LostCandidate("the tests hand over " + str(error)) from None
        self._pipe.send(b"C", payload)
        letter, raw = self._pipe.receive()
        if letter == b"U":
            raise TypeError("the function gave back " + str(decode_value(raw))[:LONGEST_WORDS])
        reply_value, state = decode_value(raw)
        if state is not None:
            new_args, changed_named = decode_value(state)
            for place, before in enumerate(args):
                put_back(before, new_args[place])
            for key, after in changed_named.items():
                put_back(named.get(key), after)
        if letter == b"E":
            raise rebuild_error(*reply_value)
        return reply_value


def put_back(before: Any, after: Any) -> None:
    """Apply the function's changes to a list, dict or set argument to the tests' own object."""
    if type(before) is not type(after):
        return
    if isinstance(before, list):
        before[:] = after
    elif isinstance(before, (dict, set)):
        before.clear()
        before.update(after)


def rebuild_error(name: str, message: str) -> BaseException:
    """Return the built-in error of that name, which tests may expect; any other error, and the tests' own, as RuntimeError."""
    kind = getattr(__import__("builtins"), name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, (AssertionError, UnicodeError)):
        return kind(message)
    return RuntimeError(str(name) + ": " + str(message))


def tester(pipe: Pipe, helpers: str, tests: str, name: str) -> tuple[Any, ...]:
    """Return (status, words, number of calls) of the tests."""
    function = CalledFunction(pipe)
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        for source, file in ((helpers, "<helpers>"), (tests, TESTS_FILE)):
            exec(compile(source, file, "exec", 0, True), space)  # noqa: S102 - what this process is for
        space[name] = function
        check = space["check"]
    except BaseException as error:
        return "sandbox_error", "the tests cannot be loaded: " + words(error), 0
    try:
        check(function)
    except LostCandidate as error:
        return "sandbox_error", str(error)[:LONGEST_WORDS], function.calls
    except AssertionError as error:
        message = words(error) if describe_message(error) else words(error) + ": " + find_failed_line(error, tests)
        return "assertion", message[:LONGEST_WORDS].rstrip(": "), function.calls
    except BaseException as error:
        return "exception", words(error), function.calls
    return ("passed" if function.calls else "no_call"), "", function.calls


def main() -> None:
    """Limit this process, report that it is ready, and carry out the parent's requests."""
    sys.path[:] = [place for place in sys.path if place]
    pipe = Pipe()
    role, *limits = decode_value(sys.argv[1].encode())
    limit(*limits)
    del sys.argv[1:]
    pipe.send(b"R", encode_value(".".join(map(str, sys.version_info[:3]))))
    sources = decode_value(pipe.receive()[1])
    if role == "candidate":
        candidate(pipe, *sources)
    else:
        pipe.send(b"V", encode_value(tester(pipe, *sources)))
    os._exit(0)


if __name__ == "__main__":
    main()
