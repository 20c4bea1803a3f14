"""Each way of asking has one spelling, which is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.settings import ITEM_TEMPLATES, QaCondition


@given(st.sampled_from(ITEM_TEMPLATES), st.integers(0, 100), st.booleans(), st.integers(0, 3))
def test_every_condition_is_read_back(template: str, shots: int, as_turns: bool, rotation: int) -> None:
    made = QaCondition(template, shots, as_turns and shots > 0, rotation if template != "plain" else 0)
    assert QaCondition.parse_text(str(made)) == made


@given(st.text() | st.from_regex(r"(letters|cot|plain|x)(,\d{1,3}-shots?(-turns)?)?(,rotated-\d)? ?", fullmatch=True))
def test_a_text_is_the_spelling_of_a_condition_or_an_error(text: str) -> None:
    try:
        made: QaCondition | None = QaCondition.parse_text(text)
    except ConfigError:
        made = None
    assert made is None or str(made) == text


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
