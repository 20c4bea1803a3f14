"""The syntax of settings after a model's name: `gpt-4.1-mini@max_tokens=512,temperature=0.7`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.errors import ConfigError

SAMPLING = (
    "temperature",
    "max_tokens",
    "top_p",
    "seed",
    "reasoning_effort",
    "presence_penalty",
    "frequency_penalty",
    "provider",
)
"""The parameters that change what a model writes: with the model string, and nothing else, its variant."""


def split_selector(selector: str) -> tuple[str, dict[str, str | None]]:
    """Split `core@temperature=0.7` into (`core`, settings as text). An @ without = belongs to the name: vertex_ai/claude@20250101.

    Raises ConfigError if a setting is unknown, empty or repeated.
    """
    base, _, tail = selector.rpartition("@")
    if not base or "=" not in tail:
        return selector, {}
    settings: dict[str, str | None] = {}
    for part in tail.split(","):
        key, _, value = (text.strip() for text in part.partition("="))
        if key not in SAMPLING or not value or key in settings:
            raise ConfigError(
                f"model {selector!r}: setting {part.strip()!r}; allowed, each once: {', '.join(f'{name}=...' for name in SAMPLING)}"
            )
        settings[key] = None if value == "null" else value
    return base, settings


def format_settings(settings: Mapping[str, Any]) -> str:
    """Return the settings as written after an @."""
    return ",".join(f"{key}={'null' if value is None else format_setting(value)}" for key, value in settings.items())


def format_setting(value: float | str) -> str:
    """Return the only spelling of a value: 0 for 0, 0.0 and -0.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
