"""The policy that scores are made by, and its hash."""

from __future__ import annotations

from typing import Any

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.hybrid import ScoringPolicy


def test_every_choice_changes_the_hash_and_equal_choices_do_not() -> None:
    policies = [
        ScoringPolicy(),
        ScoringPolicy(beta=0.5),
        ScoringPolicy(or_paths="two_group"),
        ScoringPolicy(should_not_paths="max"),
        ScoringPolicy(embedder="openai/text-embedding-3-small"),
    ]
    assert len({policy.policy_hash for policy in policies}) == len(policies)
    assert ScoringPolicy(beta=1).policy_hash == ScoringPolicy(beta=1.0).policy_hash


def test_the_hash_of_the_usual_policy_never_changes() -> None:
    """Runs that were made under it would no longer be compared with later ones."""
    assert ScoringPolicy().policy_hash == "4fabf86319ac47906fe02ee685c46413"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"beta": 1.01}, r"policy beta: got 1\.01; allowed: a number from 0"),
        ({"beta": float("nan")}, "policy beta: got nan"),
        ({"beta": True}, "policy beta: got True"),
        ({"beta": "0.35"}, "policy beta: got '0.35'"),
        ({"or_paths": "best"}, "policy or_paths: got 'best'; allowed: document, two_group"),
        ({"should_not_paths": "min"}, "policy should_not_paths: got 'min'; allowed: worst, max"),
        ({"embedder": " "}, "policy embedder: got ' '; allowed: the name of an embedder"),
    ],
)
def test_a_policy_that_is_none_is_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScoringPolicy(**choice)
