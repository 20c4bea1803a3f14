"""What crosses between the two processes of a check is plain data, and stays what it was."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sandbox.worker import NotTransferable, decode_value, encode_value, put_back, rebuild_error

PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(st.characters()), st.binary()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.tuples(st.integers())), inner, max_size=4),
        st.sets(st.one_of(st.integers(), st.text(max_size=3)), max_size=4),
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_crosses_unchanged(value: object) -> None:
    assert _ordered(decode_value(encode_value(value))) == _ordered(value)


def _ordered(value: object) -> str:
    """The text of a value with the members of its sets in one order: equal sets may list theirs in different ones."""
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {[_ordered(item) for item in value]}"
    if isinstance(value, set):
        return f"set {sorted(map(_ordered, value))}"
    if isinstance(value, dict):
        return f"dict {[(_ordered(key), _ordered(item)) for key, item in value.items()]}"
    return repr(value)


@pytest.mark.parametrize("members", [(0, 8), (8, 0), (1, "a", "b"), ("b", "a", 1)])
def test_a_set_beside_what_equals_nothing_crosses(members: tuple[object, ...]) -> None:
    value = [math.nan, set(members), {"nan": -math.nan}]
    assert _ordered(decode_value(encode_value(value))) == _ordered(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_plain_data_or_refused(raw: bytes) -> None:
    try:
        value = decode_value(raw)
    except NotTransferable:
        return
    assert type(value) in (type(None), bool, int, float, complex, str, bytes, list, tuple, set, dict)


def test_deep_and_round_data_is_refused() -> None:
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    ring: list[object] = []
    ring.append(ring)
    for value in (deep, ring):
        with pytest.raises(NotTransferable, match="too deeply"):
            encode_value(value)
    for raw in (b"[" * 100_000, b"[1", b'"\xff"', b"", b"1 2", b'{"e":[[]]}', b'{"x":1}', b"{}", b'{"c":[1,2,3]}', b"9" * 5000):
        with pytest.raises(NotTransferable):
            decode_value(raw)


def test_only_builtin_errors_are_raised_again() -> None:
    assert type(rebuild_error("ValueError", "no")) is ValueError
    for name in ("AssertionError", "SystemExit", "KeyboardInterrupt", "Odd", "print", "UnicodeDecodeError"):
        assert type(rebuild_error(name, "no")) is RuntimeError
    kept = [1]
    put_back(kept, (2,))
    assert kept == [1]
