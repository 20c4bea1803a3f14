"""System prompts by id, from `systems.toml` in this folder."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from dtef_pipeline.errors import ConfigError

_TEXTS = tomllib.loads(files("dtef_pipeline.survey.blueprint").joinpath("systems.toml").read_text(encoding="utf-8"))
SHIPPED = ("default", *_TEXTS["segment"])
"""Ids of the system prompts that need no text from the user."""


def check_system(system: str, own_text: str) -> None:
    """Raise ConfigError for an id that is not shipped and has no text, and for a shipped id with another text."""
    if system in SHIPPED and own_text:
        raise ConfigError(
            f"system prompt {system!r} is shipped and cannot be changed: give your own an id other than {', '.join(SHIPPED)}"
        )
    if system not in SHIPPED and not own_text.strip():
        raise ConfigError(
            f"unknown system prompt {system!r}: allowed: {', '.join(SHIPPED)}, or an id of your own with its text"
        )


def choose_system_prompt(system: str, own_text: str, task: str, answer_form: str, profile: str = "segment") -> str:
    """Return the system text; empty for `none`. `answer_form` is the description of the answer in the `default` prompt."""
    if system == "default":
        return f"{_TEXTS['default'][profile][task]} {answer_form}"
    return str(_TEXTS[profile].get(system, own_text))
