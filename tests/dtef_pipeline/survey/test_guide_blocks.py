"""The blocks of a discussion guide: which polls stand below one introduction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dtef_pipeline.survey.adapters import read_survey
from tests.dtef_pipeline.survey.conftest import POLL


def test_polls_below_words_that_announce_a_list_are_a_block(
    round_directory: Callable[..., Path], write_csv: Callable[..., Path]
) -> None:
    texts = ["Is it good?", "May it be sold?", "Is it old?", "Was it new?", "Twice?", "Once?"]
    rows = [(f"q{at}", POLL, text, option) for at, text in enumerate(texts) for option in ("Yes", "No")]
    directory = round_directory({"O7: Kenya": ["60%", "40%"] * len(texts)}, rows)
    guide = [
        ["Item type", "Content"],
        ["speak", "Welcome. Thank you.\nPlease say of each of them:"],
        *((POLL, text) for text in texts[:2]),
        ["ask opinion", "Why?"],
        [POLL, texts[2]],
        ["speak", "Here is a story."],
        [POLL, texts[3]],
        ["speak", "How about the following?"],
        *([POLL, text] for text in (*texts[4:], texts[4])),
    ]
    write_csv(directory / "GD9_discussion_guide.csv", guide)
    blocks = [question.block for question in read_survey(directory).questions]
    assert blocks == [
        "Please say of each of them:",
        "Please say of each of them:",
        None,
        None,
        None,
        "How about the following?",
    ]
