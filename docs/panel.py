"""Writes data/panel.yaml, the example of a panel file, and lists its keys for the reference: meanings and defaults are those of the settings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dtef_pipeline.documents import member_docstrings
from dtef_pipeline.drift.settings import DriftSettings
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import ASKING_SETTINGS, Door, RunSettings, list_settings_at, setting
from dtef_pipeline.preference.vote_fit import VoteSettings

PANEL = Path(__file__).resolve().parent.parent / "data" / "panel.yaml"
TITLE = """\
# What is evaluated every night. Copy this file, change it, and name the copy in DTEF_PANEL. docs/how-to/nightly.md explains it.
# `make docs` writes it. Every key may be left out.
"""
SECTIONS: dict[str, tuple[str, type[BaseModel]]] = {
    "": (
        "Surveys: the schedule `survey_nightly`. Without these keys, the baselines run on every round.",
        FAMILY_BY_NAME["survey"].settings,
    ),
    "drift": ("Drift, of all families.", DriftSettings),
    "rubric": (
        "Rubrics: the schedule `rubric_nightly`. Without this section, no rubric runs.",
        FAMILY_BY_NAME["rubric"].settings,
    ),
    "qa": ("Questions: the schedule `qa_nightly`. Without suites and parts, none run.", FAMILY_BY_NAME["qa"].settings),
    "games": ("Games: the schedule `games_nightly`. Without scenarios, none are played.", FAMILY_BY_NAME["games"].settings),
    "preference": ("How votes become scores.", VoteSettings),
}
"""By section: its heading, and the model of its keys. The section without a name is the top of the file."""
ACTIVE = {"models", "context_levels", "questions", "max_cost_usd", "budgets", "drift.severity"}
"""The keys that are not commented out."""
EXAMPLES: dict[str, Any] = {
    "models": ["gpt-4.1-mini", "claude-haiku-4.5"],
    "rounds": ["GD4", "GD5"],
    "segments": ["country:kenya", "ageGroup:18-25"],
    "context_levels": [0],
    "questions": 20,
    "sample_segments": 2,
    "max_cost_usd": 5,
    "max_calls": 20000,
    "max_tokens": 20000000,
    "budgets": {"claude-haiku-4.5": {"max_cost_usd": 2}},
    "drift.since": {"claude-haiku-4.5": "2026-03-01"},
    "drift.control": ["gpt-4.1-mini"],
    "rubric.blueprints": ["compass__*"],
    "rubric.judges": ["standard=gpt-4.1-mini", "prompt-aware=claude-haiku-4.5"],
    "rubric.analysts": ["claude-haiku-4.5"],
    "rubric.anchors": 200,
    "rubric.role_budgets": {"judge": {"max_cost_usd": 3}},
    "qa.suites": ["gsm8k", "mmlu"],
    "qa.parts": ["all", "high_school_*"],
    "qa.limit": 50,
    "qa.filter": ["YEAR=2024"],
    "qa.judges": "my-judges.yaml",
    "qa.judge": "gpt-5.4-mini",
    "qa.sample_rate": 0.1,
    "qa.daily_budget": 2,
    "qa.allow_unpriced": ["my-judge"],
    "qa.sandbox": "auto",
    "qa.role_budgets": {"judge": {"max_cost_usd": 2}},
    "games.scenarios": ["thirteen", "poker/*"],
    "games.personas": ["none", "cautious"],
    "games.opponents": ["random"],
    "games.seeds": "1-20",
    "games.role_budgets": {"candidate": {"max_calls": 20000}},
    "preference.items": ["mmlu/*"],
}
"""What the file shows for a key; else the example of the survey's key of this name, else the default."""
UNSET = {
    "rounds": "all that have been run",
    "context_levels": "all that have prompts",
    "conditions": "distribution/attribute-label; an empty list: all that have prompts",
    "drift.control": "all others",
    "rubric.analysts": "the collection `analyst`",
    "qa.sample_rate": "the file's",
    "qa.daily_budget": "the file's",
    "qa.sandbox": "DTEF_SANDBOX, else auto",
    "qa.models": "none",
    "preference.items": "all",
}
"""What holds without a key, where neither the default nor the command's help says it."""


class Key(NamedTuple):
    """A key of the panel file."""

    section: str
    name: str
    meaning: str
    default: str
    example: str

    @property
    def path(self) -> str:
        """As messages spell it: `drift.since`."""
        return f"{self.section}.{self.name}" if self.section else self.name


def list_keys(section: str) -> Iterator[Key]:
    """The keys of a section in the order of its settings; limits of the run come last."""
    _, model = SECTIONS[section]
    meanings = member_docstrings(model)
    if issubclass(model, RunSettings):
        unset = {name: setting(model, name).unset for name in list_settings_at(model, Door.PANEL)}
    else:
        unset = dict.fromkeys(model.model_fields, "")
    for name in sorted(unset, key=lambda name: name in ASKING_SETTINGS):
        field = model.model_fields[name]
        path = f"{section}.{name}" if section else name
        default = UNSET.get(path) or format_default(field, unset[name], is_limit=name.startswith("max_"))
        example = EXAMPLES.get(path, EXAMPLES.get(name, _plain_default(field)))
        yield Key(section, name, " ".join(meanings[name].split()) + format_choices(field), default, to_yaml(example))


def format_default(field: FieldInfo, unset: str, *, is_limit: bool) -> str:
    """What holds without the key, in words or in YAML."""
    default = _plain_default(field)
    if default is None or default == [] or default == {}:
        return unset or ("no limit" if is_limit else "none")
    return to_yaml(default)


def format_choices(field: FieldInfo) -> str:
    """The values that are allowed, where they are listed: ` One of: half, drop.`"""
    kinds = get_args(field.annotation) if isinstance(field.annotation, UnionType) else (field.annotation,)
    choices = [str(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    return f" One of: {', '.join(choices)}." if len(choices) > 1 else ""


def to_yaml(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, float):
        return f"{value:g}"
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.removesuffix("...\n").strip()


def _plain_default(field: FieldInfo) -> Any:
    return field.default.model_dump() if isinstance(field.default, BaseModel) else field.default


def panel_file() -> str:
    """The text of data/panel.yaml."""
    blocks = [TITLE]
    for section, (heading, _) in SECTIONS.items():
        keys = list(list_keys(section))
        hidden = not any(key.path in ACTIVE for key in keys)
        lines = [f"# {heading}"] + ([f"{section}:"] if section else [])
        for key in keys:
            lines += _key_lines(key, "  " if section else "", commented=not hidden and key.path not in ACTIVE)
        blocks.append("\n".join([lines[0], *(f"# {line}" if hidden else line for line in lines[1:])]) + "\n")
    return "\n".join(blocks)


def _key_lines(key: Key, indent: str, *, commented: bool) -> list[str]:
    default = "" if key.default in ("none", key.example) else f" Default: {key.default}."
    comment = textwrap.wrap(key.meaning + default, 110, break_on_hyphens=False)
    return [*(f"{indent}# {line}" for line in comment), f"{indent}{'# ' if commented else ''}{key.name}: {key.example}"]


def reference_tables() -> list[str]:
    """The keys of the panel file as tables in Markdown, one per section."""
    lines = []
    for section, (heading, _) in SECTIONS.items():
        lines += [
            f"### Panel file: {section or 'top of the file'}",
            "",
            heading,
            "",
            "| key | default | meaning |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| `{key.path}` | {key.default} | {key.meaning} |".replace(" | none |", " | |") for key in list_keys(section)
        ]
        lines.append("")
    return lines


if __name__ == "__main__":
    PANEL.write_text(panel_file(), encoding="utf-8")
