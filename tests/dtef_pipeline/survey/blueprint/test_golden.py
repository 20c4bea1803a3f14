"""What models are asked, word for word: `python -m tests.dtef_pipeline.survey.blueprint.golden` writes the files again."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from dtef_pipeline.survey.blueprint.options import SHIPPED
from tests.dtef_pipeline.survey.blueprint.golden import FILES, FOLDER, document


@pytest.mark.parametrize("name", FILES)
def test_prompts_are_the_golden_ones_word_for_word(name: str) -> None:
    assert document(FILES[name]) == (FOLDER / name).read_text(encoding="utf-8")


def test_every_shipped_system_prompt_and_option_order_is_golden() -> None:
    flags = set(chain.from_iterable(re.findall(r"\+([^+]+)", condition) for condition in FILES["variants.md"]))
    assert {f"system={name}" for name in SHIPPED if name != "default"} <= flags
    assert {"reversed", "rotated-1", "show-n", "random", "seed=7"} <= flags
