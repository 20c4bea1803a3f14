"""Each way of asking has one spelling, which is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.settings import ITEM_TEMPLATES, QaCondition


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (QaCondition(), "letters"),
        (QaCondition(shots=5), "letters,5-shot"),
        (QaCondition("cot", 5, True, 1), "cot,5-shot-turns,rotated-1"),
        (QaCondition("parens", rotation=3), "parens,rotated-3"),
        (QaCondition("plain", 8), "plain,8-shot"),
    ],
)
def test_spellings_stay_as_they_are(condition: QaCondition, text: str) -> None:
    assert str(condition) == text
    assert QaCondition.parse_text(text) == condition


@given(st.sampled_from(ITEM_TEMPLATES), st.integers(0, 100), st.booleans(), st.integers(0, 3))
def test_every_condition_is_read_back(template: str, shots: int, as_turns: bool, rotation: int) -> None:
    made = QaCondition(template, shots, as_turns and shots > 0, rotation if template != "plain" else 0)
    assert QaCondition.parse_text(str(made)) == made


@given(st.text() | st.from_regex(r"[a-z]{3,7}(,\d{1,3}-shot(-turns)?)?(,rotated-\d)?", fullmatch=True))
def test_a_text_is_the_spelling_of_a_condition_or_an_error(text: str) -> None:
    try:
        made: QaCondition | None = QaCondition.parse_text(text)
    except ConfigError:
        made = None
    assert made is None or str(made) == text


@pytest.mark.parametrize(
    "text", ["", "letters,0-shot", "letters,rotated-0", "letters,05-shot", "rotated-1,letters", "letters ", "cot,5-shots"]
)
def test_another_spelling_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="allowed: "):
        QaCondition.parse_text(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": "prose"}, "template 'prose': allowed: letters, parens, cot, plain"),
        ({"shots": -1}, "few-shot -1: allowed: 0 to 100"),
        ({"shots": 101}, "few-shot 101: allowed: 0 to 100"),
        ({"as_turns": True}, "allowed: few-shot 1 or more"),
        ({"rotation": 4}, "order rotated-4: allowed: rotated-1 to rotated-3"),
        ({"template": "plain", "rotation": 1}, "order rotated-1"),
    ],
)
def test_settings_that_no_prompt_can_have_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        QaCondition(**settings)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_items_without_options_have_one_template() -> None:
    wanted = QaCondition("cot", 2, True)
    assert wanted.adapt_to_type("choice") == wanted
    assert wanted.adapt_to_type("number") == QaCondition("plain", 2, True)
    with pytest.raises(ConfigError, match="order rotated-1"):
        QaCondition(rotation=1).adapt_to_type("code")
