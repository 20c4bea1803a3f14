"""What labellers read does not say who wrote it, but for names that the row is about."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.rubric.labels.label_sheet import blind_rows

ANSWERED = pd.DataFrame(
    {
        "blueprint": ["b", "b", "c"],
        "model": ["fast", "claude-haiku", "fast"],
        "model_variant": [
            "openai/gpt-4o-mini[temperature=0]",
            "openrouter/anthropic/claude-3-5-haiku[temperature=0]",
            "openai/gpt-4o-mini",
        ],
        "served_model": ["gpt-4o-mini-2024-07-18", None, "sparrow-7"],
    }
)


def hidden(
    text: str, shown: str = "Who wrote the law?", criterion: str = "Names the author.", blueprint: str = "b"
) -> tuple[str, int]:
    rows = pd.DataFrame({"blueprint": [blueprint], "shown": [shown], "text": [text], "criterion": [criterion]})
    found = blind_rows(rows, ANSWERED).iloc[0]
    return found["text"], int(found["hidden"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("As ChatGPT, made by OpenAI, I cannot.", ("As [model], made by [company], I cannot.", 2)),
        ("I am Claude 3.5 Haiku of Anthropic.", ("I am [model] of [company].", 2)),
        ("gpt-4o-mini-2024-07-18 says so; so does GPT-4o.", ("[model] says so; so does [model].", 2)),
        ("The law is of 1948.\n\n  It holds.", ("The law is of 1948.\n\n  It holds.", 0)),
        ("", ("", 0)),
    ],
)
def test_names_that_say_who_wrote_a_text_are_hidden_and_counted(text: str, expected: tuple[str, int]) -> None:
    assert hidden(text) == expected


def test_what_a_model_was_served_as_is_hidden_in_its_own_blueprint() -> None:
    assert hidden("sparrow-7 speaking", blueprint="c") == ("[model] speaking", 1)
    assert hidden("sparrow-7 speaking", blueprint="b") == ("sparrow-7 speaking", 0)


@pytest.mark.parametrize("where", ["shown", "criterion"])
def test_a_name_that_the_row_is_about_stays(where: str) -> None:
    text = "OpenAI was founded in 2015, says Claude."
    assert hidden(text, **{where: "When was OpenAI founded?"}) == ("OpenAI was founded in 2015, says [model].", 1)
    assert hidden(text) == ("[company] was founded in 2015, says [model].", 2)


def test_rows_keep_their_order_and_their_other_columns() -> None:
    rows = pd.DataFrame(
        {"blueprint": "b", "shown": "x", "criterion": "y", "text": ["I am ChatGPT", "no", "Claude"], "item": ["2", "1", "3"]},
        index=[5, 1, 3],
    )
    found = blind_rows(rows, ANSWERED)
    assert found["text"].tolist() == ["I am [model]", "no", "[model]"]
    assert found["hidden"].tolist() == [1, 0, 1]
    assert found[["item", "shown", "criterion"]].equals(rows[["item", "shown", "criterion"]])
    assert rows["text"].tolist()[0] == "I am ChatGPT"
