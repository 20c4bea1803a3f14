"""Clean arrays read all at once: their numbers to the last bit, and nothing that the path by row reads otherwise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.reading.parsing import Reading, parse_response, parse_responses
from dtef_pipeline.survey.reading.whole_columns import clean_arrays
from dtef_pipeline.survey.tables import READING

OPTIONS = {k: [f"Option {i}" for i in range(k)] for k in range(1, 13)}
ALMOST = ["0", "00", "007", "1.", ".", ".5", "1..2", "1.2.3", "12345678", "123456789", "1.234567", "1.2345678", "1,2", "1/2"]
ALMOST += ["1:", "-1", "+1", " 1", "1 ", "1e1", "a", "١", "1\x00", "nan", "", "999999.", "0.000000"]
PIECES = st.one_of(
    st.sampled_from(ALMOST),
    st.text("0123456789.", max_size=9),
    st.text("0123456789.,-+e []/:\x00\xff", max_size=9),
    st.builds("{:.{}f}".format, st.floats(0, 1e6), st.integers(0, 6)),
)


def arrays(k: int) -> st.SearchStrategy[str]:
    numbers = st.one_of(st.builds("{:.1f}".format, st.floats(0, 100)), st.integers(0, 100).map(str), PIECES)
    joined = st.tuples(st.lists(numbers, min_size=k - 1, max_size=k + 1), st.sampled_from([", ", ",", " , ", ",\n  "]))
    around = st.sampled_from(
        ["[{}]", "[{}]", "[{}]", " [ {} ]\n", "[{}", "{}]", "[[{}]]", "My answer: [{}].", "```json\n[{}]\n```", "[]{}"]
    )
    return st.builds(lambda form, listed: form.replace("{}", listed[1].join(listed[0])), around, joined)


ROWS = st.integers(1, 12).flatmap(
    lambda k: st.tuples(
        st.just(k), st.one_of(arrays(k), arrays(k), st.none(), st.sampled_from(["", "[", "]", "no", "Option 0: 100%"]))
    )
)
ORDERS = st.one_of(st.none(), st.permutations(range(3)), st.just([0, 1]))


@given(rows=st.lists(ROWS, max_size=14), order=ORDERS, first=st.integers(0, 5), orders=st.booleans())
def test_columns_are_read_as_each_row_by_itself(
    rows: list[tuple[int, str | None]], order: list[int] | None, first: int, orders: bool
) -> None:
    texts = pa.array([text for _, text in rows], pa.string())[first:]
    options = pa.array([OPTIONS[k] for k, _ in rows], pa.list_(pa.string()))[first:]
    readings = [Reading(order=None if order is None else tuple(order)) if i % 2 else Reading() for i in range(len(rows))]
    how = pa.array([reading._asdict() if orders else None for reading in readings], READING)[first:]
    read = parse_responses(texts, options, how)
    found = list(zip(*(column.to_pylist() for column in read), strict=True))
    by_row = [
        parse_response(text, k, OPTIONS[k], reading if orders else Reading())
        for (k, text), reading in zip(rows, readings, strict=True)
    ][first:]
    expected = [(one.status, None if one.distribution is None else list(one.distribution), one.reason) for one in by_row]
    assert found == expected


def test_neighbouring_texts_do_not_complete_each_other() -> None:
    """The bytes of a column lie one after another: `[1,2` and `]` are no array, whatever their neighbours lack."""
    texts = ["[1,2", "]", "[3,4]", "[1,2][3,4", "]", "", "[5,", "6]", "[7,8]", None, "[9,10]"]
    column = pa.array(texts, pa.large_string())
    found = list(clean_arrays(column, np.full(len(texts), 2), np.ones(len(texts), dtype=bool)))
    assert sorted((row, *places) for one in found for row, *places in zip(one.rows, *one.places, strict=True)) == [
        (2, 3, 4),
        (8, 7, 8),
        (10, 9, 10),
    ]


def test_what_lies_under_a_null_is_not_read() -> None:
    column = pa.array(["[1, 2]", "[3, 4]"], pa.large_string())
    hidden = pa.Array.from_buffers(pa.large_string(), 2, [pa.py_buffer(b"\x02"), *column.buffers()[1:]])
    (found,) = clean_arrays(hidden, np.array([2, 2]), np.array([True, True]))
    assert (found.rows.tolist(), [place.tolist() for place in found.places]) == ([1], [[3], [4]])


def test_texts_that_are_not_wanted_or_too_long_are_left() -> None:
    column = pa.array(["[1, 2]", "[3, 4]", "[" + "1, " * 100 + "1]"], pa.large_string())
    assert list(clean_arrays(column, np.array([2, 1, 101]), np.array([False, True, True]))) == []
