"""The page of a run."""

from __future__ import annotations

import pytest

from dtef_pipeline.api.run_pages import four_digits


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.00037361, "0.0003736"),
        (-9.0714e-05, "-0.00009071"),
        (0.5, "0.5"),
        (12, "12"),
        (828.25, "828.2"),
        (12_345.6, "12,346"),
        (None, "–"),
        ("none", "none"),
    ],
)
def test_numbers_are_shown_as_people_write_them(value: object, shown: str) -> None:
    """Small amounts had an exponent."""
    assert four_digits(value) == shown
