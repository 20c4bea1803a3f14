"""What models are asked, word for word: `python -m tests.dtef_pipeline.blueprint.golden` writes the files again."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from dtef_pipeline.blueprint.options import FORMATS, REASONINGS, TASKS
from dtef_pipeline.blueprint.systems import SHIPPED
from tests.dtef_pipeline.blueprint.golden import FILES, FOLDER, document


@pytest.mark.parametrize("name", FILES)
def test_prompts_are_the_golden_ones_word_for_word(name: str) -> None:
    assert document(FILES[name]) == (FOLDER / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(FILES)


def test_every_task_format_reasoning_and_structure_is_golden() -> None:
    spelled = [condition for task in TASKS for condition in FILES[f"{task}.md"]]
    assert len(set(spelled)) == len(spelled) == len(TASKS) * len(FORMATS) * len(REASONINGS) * 2


def test_every_shipped_system_prompt_and_option_order_is_golden() -> None:
    flags = set(chain.from_iterable(re.findall(r"\+([^+]+)", condition) for condition in FILES["variants.md"]))
    assert {f"system={name}" for name in SHIPPED if name != "default"} <= flags
    assert {"reversed", "rotated-1", "show-n", "random", "seed=7"} <= flags


def test_every_golden_prompt_of_one_question_has_another_prompt_id() -> None:
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in FILES]
    ids = [found for text in texts for found in re.findall(r"- prompt_id: (\w{32})", text)]
    sections = [section for text in texts for section in re.split(r"(?m)^## ", text)[1:]]
    assert len(ids) == 2 * len(sections)
    assert len(set(ids)) == len(ids)
