"""The settings of runs of the qa family: the parts, the models, the prompts, and how responses are judged, executed and scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from dtef_pipeline.asking.calls import Draws
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import (
    ASKING_SETTINGS,
    NOT_API,
    ONLY_COMMAND,
    ONLY_PANEL,
    Door,
    RunSettings,
    Setting,
    make_validator,
)
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.corpus import parse_filter
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.text.name_matching import filter_by_patterns

if TYPE_CHECKING:
    from dtef_pipeline.qa.model import ScorerSettings
    from dtef_pipeline.qa.prompt_rows import AskSettings

LETTERS, PARENS, COT, PLAIN_TEMPLATE = "letters", "parens", "cot", "plain"
CHOICE_TEMPLATES = (LETTERS, PARENS, COT)
"""Templates of items with options: `A. text`, `(A) text`, or letters with the request to think first."""
ITEM_TEMPLATES = (*CHOICE_TEMPLATES, PLAIN_TEMPLATE)
"""All templates; `plain` is for items without options."""
MAX_SHOTS = 100
_CONDITION = re.compile(
    rf"(?P<template>{'|'.join(ITEM_TEMPLATES)})(?:,(?P<shots>[1-9][0-9]?|100)-shot(?P<turns>-turns)?)?(?:,rotated-(?P<rotation>[1-3]))?"
)
_CONDITION_FORM = "TEMPLATE[,K-shot[-turns]][,rotated-N], such as cot,5-shot-turns,rotated-1"


@dataclass(frozen=True, slots=True)
class QaCondition:
    """A condition. Raises ConfigError for rotated options of items without options."""

    template: str = LETTERS
    """One of ITEM_TEMPLATES."""
    shots: int = 0
    """Number of examples shown before the item, 0-100."""
    as_turns: bool = False
    """Whether examples are turns of a conversation instead of parts of one message."""
    rotation: int = 0
    """Number of places by which the options are rotated to the left, 0-3."""

    def __post_init__(self) -> None:
        if self.rotation and self.template == PLAIN_TEMPLATE:
            raise ConfigError(f"order rotated-{self.rotation} for items without options; allowed: the file's order")

    def __str__(self) -> str:
        """Return the spelling in the column `condition`; `parse_text` reads it back."""
        shots = f",{self.shots}-shot{'-turns' if self.as_turns else ''}" if self.shots else ""
        return f"{self.template}{shots}{f',rotated-{self.rotation}' if self.rotation else ''}"

    @classmethod
    def parse_text(cls, text: str) -> Self:
        """Parse a spelling. Raises ConfigError for one that `str` never returns."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ConfigError(f"condition {text!r}: allowed: {_CONDITION_FORM}")
        return cls(match["template"], int(match["shots"] or 0), bool(match["turns"]), int(match["rotation"] or 0))


QA_PANEL_SECTION = "qa"
_NOT_COMMAND = (Door.PANEL, Door.API)


class QaSettings(RunSettings):
    """Settings of runs of the qa family."""

    suites: Annotated[list[str], Setting(option="--suite", metavar="SUITE|PATTERN", unset="all")] = []
    """Suite to evaluate."""
    parts: Annotated[list[str], Setting(option="--part", metavar="PART|SUITE/PART|PATTERN", unset="all")] = []
    """Part to evaluate, by name or pattern, such as 'high_school_*' or 'mmlu/*'."""
    models: Annotated[list[str], Setting(option="--model", unset="none; only stored responses are scored")] = []
    """Model to evaluate: a model or collection that `dtef models` lists, a model string of LiteLLM, or `provider:name`."""
    draws: Draws = 1
    """Number of times each item is asked."""
    limit: Annotated[int | None, Field(ge=1, le=1_000_000), Setting(unset="all")] = None
    """Maximum number of items per part, evenly spread over it and the same in every run."""
    template: Literal["letters", "parens", "cot"] = "letters"
    """How options are shown: `A. text`, `(A) text`, or as letters with the request to think first."""
    few_shot: Annotated[int, Field(ge=0, le=MAX_SHOTS)] = 0
    """Number of development items of the subject to show first, with their answers."""
    few_shot_as: Annotated[Literal["message", "turns"], Setting(_NOT_COMMAND)] = "message"
    """How to show these items: all in one message, or each as a turn of the conversation."""
    order: Literal["file", "rotated-1", "rotated-2", "rotated-3"] = "file"
    """Order of the options: the file's, or rotated by this number of places; answers are mapped back."""
    retriever: Literal["bm25", "embedding", "hybrid", "remote"] = "bm25"
    """Retriever of transcript chunks for an item; remote: the server of DTEF_SOCIOSCOPE_URL."""
    k: Annotated[int, Field(ge=1, le=1_000)] = 10
    """Number of chunks of transcripts to show."""
    filter: Annotated[list[str], make_validator(parse_filter, "filter: "), Setting(metavar="KEY=VALUE", unset="all")] = []
    """Use only documents with this value in their metadata, such as PROJECT=US-002 or YEAR=2024. A filter that matches no document is an
    error."""
    judges: Annotated[
        str | None, Field(min_length=1), Setting(NOT_API, metavar="FILE", is_file=True, unset="data/judges.yaml")
    ] = None
    """YAML file with the block `arbiter`: model, evaluators, sample_rate, daily_budget."""
    judge: Annotated[str | None, Field(min_length=1), Setting(metavar="MODEL", unset="the file's")] = None
    """Judge; `none` turns judging off. It judges all stored responses of the parts, of all models, that it has not judged yet."""
    sample_rate: Annotated[float | None, Field(ge=0, le=1), Setting(_NOT_COMMAND)] = None
    """Share of the responses that are judged; replaces the value in the file."""
    daily_budget: Annotated[float | None, Field(ge=0), Setting(_NOT_COMMAND)] = None
    """US dollars for judges per day (UTC); replaces the value in the file."""
    allow_unpriced: Annotated[list[str], Setting(_NOT_COMMAND)] = []
    """Judges that may run under a daily budget although their price is unknown."""
    rejudge: Annotated[
        str | None, make_validator(lambda name: name and require_safe(name)), Setting(ONLY_COMMAND, metavar="SNAPSHOT")
    ] = None
    """Judge everything again and store it in this snapshot."""
    sandbox: Annotated[
        Literal["auto", "sandlock", "bwrap", "off"] | None,
        BeforeValidator(lambda value: "off" if value is False else value),  # YAML reads a bare `off` as false
        Setting(ONLY_PANEL),
    ] = None
    """Isolation level for running code; none: the value of DTEF_SANDBOX, else auto."""
    timeout_s: Annotated[float, Field(ge=0.1), Setting(_NOT_COMMAND)] = 10.0
    """Time limit in seconds for all tests of a program."""
    strict: Annotated[bool, Setting(_NOT_COMMAND)] = False
    """Score 0 if a response has several different values where one is expected."""
    penalty: Annotated[float, Field(ge=0, le=1), Setting(_NOT_COMMAND)] = 0.0
    """Deduction for each listed item that is not expected, 0 to 1."""
    wordnet_senses: Annotated[Literal["first", "all"], Setting(_NOT_COMMAND)] = "first"
    """Senses of a word whose synonyms count."""
    anchors: Annotated[int, Field(ge=0), Setting(ONLY_PANEL)] = 50
    """Number of judged answers to show the judge again, to separate judge drift from model drift."""

    anchor_seed: Annotated[int, Field(ge=0), Setting(doors=())] = SEED
    """Seed for choosing new ones."""

    @property
    def ask_settings(self) -> AskSettings:
        """The prompt settings for models."""
        from dtef_pipeline.qa.prompt_rows import AskSettings

        where = parse_filter(self.filter)
        return AskSettings(self.template, self.few_shot, self.few_shot_as, self.order, self.retriever, self.k, where)

    @property
    def scoring(self) -> ScorerSettings:
        """Settings of the scorers."""
        from dtef_pipeline.qa.model import ScorerSettings

        return ScorerSettings(strict=self.strict, penalty=self.penalty, wordnet_senses=self.wordnet_senses)

    @property
    def names_parts(self) -> bool:
        """Whether suites or parts are named; a panel or manifest without any runs nothing."""
        return bool(self.suites or self.parts)


_PROMPT_SETTINGS = ("template", "few_shot", "few_shot_as", "order", "retriever", "k", "filter")
_ARBITER = ("judges", "judge", "daily_budget", "allow_unpriced")
QA_STAGE_SETTINGS = {
    "qa_items": (),
    "qa_prompts": _PROMPT_SETTINGS,
    "qa_responses": (*ASKING_SETTINGS, *_PROMPT_SETTINGS, "models", "draws", "limit"),
    "qa_judgements": (*ASKING_SETTINGS, *_ARBITER, "sample_rate", "rejudge"),
    "qa_executions": ("snapshot", "sandbox", "timeout_s"),
    "qa_scores": ("snapshot", "strict", "penalty", "wordnet_senses"),
}
"""Settings by stage."""
QA_ANCHOR_SETTINGS = (*ASKING_SETTINGS, *_ARBITER, "anchors", "anchor_seed")


def choose_parts(
    keys: Sequence[str], suites: Sequence[str], parts: Sequence[str], *, given_as: tuple[str, str] = ("--suite", "--part")
) -> list[str]:
    """Return the `keys` whose suite matches a pattern of `suites` and that match one of `parts`, in their order; all of them without
    patterns.

    A pattern of parts is a name (`college_*`) or starts with its suite (`mmlu/*`). Raises ConfigError for a pattern without a match;
    `given_as`: the user's names of the two settings.
    """
    suite_names = set(filter_by_patterns(list(dict.fromkeys(QA_SPACE.split(key)[0] for key in keys)), suites, given_as[0]))
    suite_keys = [key for key in keys if QA_SPACE.split(key)[0] in suite_names]
    return filter_by_patterns(suite_keys, [pattern if "/" in pattern else f"*/{pattern}" for pattern in parts], given_as[1])


def select_panel_parts(panel: QaSettings, keys: Sequence[str]) -> list[str]:
    """Return the `keys` that a panel names, in their order; empty if it names none. Raises ConfigError for a pattern without a match."""
    if not keys or not panel.names_parts:
        return []
    labels = (f"{QA_PANEL_SECTION}.suites:", f"{QA_PANEL_SECTION}.parts:")
    return choose_parts(keys, panel.suites, panel.parts, given_as=labels)
