"""Pages of the API showed ids: `country:kenya`, `persona_id: none`."""

from __future__ import annotations

import pytest

from dtef_pipeline.api.pages.evaluation_text import (
    describe_run_request,
)


@pytest.mark.parametrize(
    ("family", "asks", "words"),
    [
        ("survey", {"partition": "GD4/country:kenya"}, "partition: GD4, Kenya"),
        (
            "games",
            {"persona_id": "none", "scenario_id": "poker/kuhn", "persona": ""},
            "persona: itself; scenario: Kuhn (poker)",
        ),
        ("games", {"persona_id": "calm", "persona": "calm:v2", "seeds": [1, 2]}, "persona: calm:v2; seeds: 1, 2"),
        ("of another version", {"partition": "a/b"}, "partition: a/b"),
        ("qa", {}, "–"),
    ],
)
def test_what_a_run_was_asked_is_words(family: str, asks: dict[str, object], words: str) -> None:
    assert describe_run_request(family, asks) == words
