"""What all tests of the API share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server that may ask the models of these providers. Nobody is asked."""
    for provider in ("OPENAI", "ANTHROPIC", "MISTRAL"):
        monkeypatch.setenv(f"{provider}_API_KEY", "no key")
