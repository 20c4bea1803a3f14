from __future__ import annotations

import pytest

from resources.settings import Settings


@pytest.mark.parametrize(
    ("given", "models"),
    [
        ("", ("baselines",)),
        ("a, b", ("a", "b")),
        (" a b,c ,", ("a", "b", "c")),
        ("a,,b", ("a", "b")),
        ("x@temperature=0.7,max_tokens=5, y", ("x@temperature=0.7,max_tokens=5", "y")),
    ],
)
def test_nightly_models_are_separated_by_commas_or_blanks_and_keep_their_settings(given: str, models: tuple[str, ...]) -> None:
    assert Settings.from_environment({"DTEF_NIGHTLY_MODELS": given}).nightly_models == models
