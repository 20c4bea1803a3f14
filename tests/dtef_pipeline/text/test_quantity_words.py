from __future__ import annotations

from dtef_pipeline.text.number_words import format_count


def test_one_is_singular_and_thousands_have_a_comma() -> None:
    texts = [format_count(number, "more row") for number in (0, 1, 2, 1200)]
    assert texts == ["0 more rows", "1 more row", "2 more rows", "1,200 more rows"]
    assert [format_count(2, noun) for noun in ("day", "battery", "question battery")] == [
        "2 days",
        "2 batteries",
        "2 question batteries",
    ]
