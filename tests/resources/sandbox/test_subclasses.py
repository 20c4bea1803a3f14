"""What a function returns of a subclass reaches the tests as the value of its built-in base."""

from __future__ import annotations

import pytest

from tests.resources.sandbox.test_checks import checked


@pytest.mark.parametrize(
    ("value", "base"),
    [
        ("collections.Counter('aab')", "{'a': 2, 'b': 1}"),
        ("collections.defaultdict(list, {'a': [1]})", "{'a': [1]}"),
        ("collections.OrderedDict(b=1, a=2)", "{'b': 1, 'a': 2}"),
        ("collections.namedtuple('P', 'x y')(1, 2)", "(1, 2)"),
        ("enum.IntEnum('E', 'A B').B", "2"),
        ("[enum.Enum('E', {'A': 'a'}, type=str).A]", "['a']"),
        ("type('F', (float,), {'__float__': lambda self: 9.0})(0.5)", "0.5"),
        ("type('C', (complex,), {'real': 9.0})(1j)", "1j"),
        ("type('B', (bytes,), {'__radd__': lambda self, other: b''})(b'a')", "b'a'"),
        ("type('S', (str,), {'encode': lambda *a: b'x', '__eq__': lambda *a: True, '__hash__': str.__hash__})('a')", "'a'"),
        ("type('L', (list,), {'__iter__': lambda self: iter([7]), '__len__': lambda self: 1})([1, 2])", "[1, 2]"),
        ("type('D', (dict,), {'items': lambda self: [(7, 7)]})(a=1)", "{'a': 1}"),
    ],
)
def test_a_subclass_crosses_as_the_value_of_its_base(value: str, base: str) -> None:
    """Solutions that return a Counter or a defaultdict were counted wrong. What the subclass says of itself does not count."""
    program = f"import collections, enum\ndef f(x):\n    return {value}"
    body = f"found = candidate(1)\nassert type(found) is type({base}), type(found)\nassert found == {base}, found\nassert found != 7"
    result = checked(program, body, timeout_s=60)
    assert result.status == "passed", result


def test_an_ordered_dict_keeps_its_own_order() -> None:
    program = "import collections\ndef f(x):\n    d = collections.OrderedDict(a=1, b=2)\n    d.move_to_end('a')\n    return d"
    assert checked(program, "assert list(candidate(1)) == ['b', 'a']", timeout_s=60).status == "passed"


def test_a_subclass_that_only_pretends_is_refused() -> None:
    program = "def f(x):\n    return type('Y', (), {'__class__': int, '__eq__': lambda *a: True})()"
    assert checked(program, "assert candidate(1) == 2", timeout_s=60).status == "exception"
