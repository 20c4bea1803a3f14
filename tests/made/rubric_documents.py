"""Small blueprints that between them have every part that a blueprint can have."""

from __future__ import annotations

from typing import Any

SYSTEMS = [None, "Answer as a friendly librarian."]
PATHS: dict[str, Any] = {
    "title": "Paths",
    "description": "Alternatives, functions and what is not wanted.",
    "tags": ["Made Up"],
    "models": ["openai:cand-a", "openai:cand-b"],
    "temperatures": [0.0, 0.7],
    "systems": SYSTEMS,
}
PATHS_PROMPTS: list[dict[str, Any]] = [
    {
        "id": "paths",
        "prompt": "Who answers, and where?",
        "ideal": "The council answers in Paris.",
        "weight": 2.0,
        "should": [
            "It names who answers.",
            {"text": "It says where.", "weight": 3.0},
            {"$contains_any_of": ["Paris", "Monday"]},
            ["It speaks of the law.", {"$icontains": "COURT"}],
            ["It speaks of water.", {"text": "It is short.", "weight": 0.5}],
        ],
        "should_not": [
            "It is rude.",
            {"$contains": "doubt", "weight": 2.0},
            ["It invents a source.", {"$matches": "answers [1-4]"}],
            [{"$contains": "farmer"}],
        ],
    },
    {
        "id": "talk",
        "messages": [
            {"user": "Tell me of a river."},
            {"assistant": None},
            {"user": "And in which country is it?"},
            {"assistant": None},
            {"user": "Say it in one word."},
        ],
        "should": ["It keeps to the subject.", {"$word_count_between": [5, 30]}],
    },
    {
        "id": "computed",
        "prompt": "Give JSON with a number.",
        "weight": 0.5,
        "should": [{"$is_json": True}, {"$matches": r"\d+"}],
    },
    {"id": "close", "prompt": "Say what the nurse says.", "ideal": "A nurse answers with care."},
]
ONE: dict[str, Any] = {"title": "One", "tags": ["made-up", "small"], "models": ["openai:cand-a"], "system": "Be brief."}
ONE_PROMPTS: list[dict[str, Any]] = [
    {"id": "first", "prompt": "What is one and one?", "should": ["It is right.", "It is kind."], "should_not": ["It is long."]},
    {"id": "second", "prompt": "Why?", "ideal": "For it is so.", "should": ["It gives a reason."]},
]
EDITED_PROMPTS: list[dict[str, Any]] = [{**ONE_PROMPTS[0], "should": ["It is right.", "It is warm."]}, ONE_PROMPTS[1]]
BROKEN_PROMPTS: list[dict[str, Any]] = [
    {"id": "first", "prompt": "What is two and two?", "should": ["It is right.", {"text": "It is heavy.", "weight": 99}]},
    {"id": "second", "should": ["There is no prompt."]},
    {"id": "third", "prompt": "And three?", "should": ["It counts."]},
]
