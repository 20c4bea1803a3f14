"""Pages of the API showed ids: `country:kenya`, `persona_id: none`."""

from __future__ import annotations

import pytest

from dtef_pipeline.api.pages.evaluation_text import (
    describe_run_request,
    family_title,
    metric_words,
    partition_words,
    persona_words,
    setting_words,
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


def test_families_parts_metrics_and_ways_are_words() -> None:
    assert (family_title("survey"), family_title("elsewhere")) == ("Surveys", "Elsewhere")
    assert partition_words("qa", "demo-mmlu/kitchen_science") == "Demo MMLU, Kitchen science"
    assert metric_words("survey", "js") == "Jensen-Shannon"
    asked = {"context_level": "5", "condition": "distribution"}
    assert setting_words("survey", asked) == "with 5 context questions, asked directly"
    assert setting_words("rubric", {"condition": None}) == ""
    assert persona_words(["none", "calm:v2"]) == ["itself", "calm:v2"]
