"""The options of prompts and their allowed values, and the system prompts of `systems.toml` in this folder."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.text.number_words import format_count

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


TASKS = ("distribution", "shift", "synthetic-individuals", "batch")
FORMATS = ("attribute-label", "distribution-context", "narrative")
PROFILES = ("segment", "population")
REASONINGS = ("standard", "cot")
ORDERS = ("given", "reversed", "rotated-N")
SELECTIONS = ("survey-order", "random")
BATCH_SIZES = (2, 3, 4, 5)
MAX_INDIVIDUALS = 500

_STANDARD_RESERVE = 256
_THINKING_TOKENS = 768
_TOKENS_AN_INDIVIDUAL = 6
_TOKENS_A_QUESTION = 96
_WORDS = re.compile(r"[a-z][a-z0-9-]*")


class ContextLevel(str):
    """The number of context questions of a prompt: a whole number, or `all` that fit. Raises ConfigError for other texts."""

    __slots__ = ()
    ORDER_SQL = "CASE context_level WHEN 'all' THEN 'infinity'::DOUBLE ELSE context_level::DOUBLE END"
    """`order` of the column `context_level`."""

    def __new__(cls, level: str) -> ContextLevel:
        if level != "all" and not (level.isascii() and level.isdigit() and len(level) < 7 and str(int(level)) == level):
            raise ConfigError(f"{level!r} is not a context level; write a whole number such as 0, 5 or 10, or all")
        return super().__new__(cls, level)

    @property
    def order(self) -> float:
        """The sort key of levels: 0, 5, 10, all."""
        return float("inf") if self == "all" else float(self)

    @property
    def heading(self) -> str:
        """The level as a heading."""
        if self == "0":
            return "Without context questions"
        return "With all context questions that fit" if self == "all" else f"With {format_count(int(self), 'context question')}"

    @staticmethod
    def convert_numbers(levels: Any) -> Any:
        """Return levels with the numbers of YAML as texts. A value that is not a list is unchanged, so that validation refuses it."""
        if not isinstance(levels, list):
            return levels
        return [str(level) if isinstance(level, int | float) else level for level in levels]


@dataclass(frozen=True, slots=True)
class BlueprintOptions:
    """Options of blueprints. Raises ConfigError with the option, its value and the allowed values.

    `context_levels`: numbers of context questions, or `all`. `token_budget`: tokens of prompt and response together; `answer_reserve`
    tokens are kept for the response (None: enough for the task and the reasoning). `seed` applies only to the `random` selection,
    `batch_size` to the task `batch`, `individuals` to `synthetic-individuals`. `option_order`: `given`, `reversed`, or `rotated-2`: the
    list begins with the third option. `profile`: predict the answers of the `segment` or of all respondents of the survey (`population`).
    `system`: id of a system prompt; if it is not shipped, its text is `system_text`.
    """

    context_levels: tuple[str, ...] = ("0",)
    task: str = "distribution"
    format: str = "attribute-label"
    reasoning: str = "standard"
    structured: bool = False
    option_order: str = "given"
    profile: str = "segment"
    system: str = "default"
    system_text: str = ""
    batch_size: int = 3
    individuals: int = 20
    selection: str = "survey-order"
    seed: int = 20_260_101
    token_budget: int = 4096
    answer_reserve: int | None = None
    show_n: bool = False

    def __post_init__(self) -> None:
        for level in self.context_levels:
            ContextLevel(level)
        if not self.context_levels:
            raise ConfigError("no context level is given; write a whole number such as 0, 5 or 10, or all")
        words = (
            ("task", self.task, TASKS),
            ("format", self.format, FORMATS),
            ("context selection", self.selection, SELECTIONS),
            ("reasoning", self.reasoning, REASONINGS),
            ("profile", self.profile, PROFILES),
        )
        if faults := [
            f"unknown {name} {value!r}; allowed: {', '.join(valid)}" for name, value, valid in words if value not in valid
        ]:
            raise ConfigError("; ".join(faults))
        if self.profile == "population" and self.task == "shift":
            tasks = ", ".join(task for task in TASKS if task != "shift")
            raise ConfigError(
                f"profile 'population' with the task shift, whose prompt shows the answer of all respondents: allowed: {tasks}, or the "
                "profile segment"
            )
        if self.option_order not in ORDERS[:2] and not re.fullmatch(r"rotated-[1-9][0-9]?", self.option_order):
            raise ConfigError(f"option order {self.option_order!r}: allowed: given, reversed, rotated-1, rotated-2, ...")
        if self.batch_size not in BATCH_SIZES:
            raise ConfigError(
                f"batch of {format_count(self.batch_size, 'question')}: allowed: {', '.join(map(str, BATCH_SIZES))}"
            )
        if not 1 <= self.individuals <= MAX_INDIVIDUALS:
            raise ConfigError(f"{format_count(self.individuals, 'individual')}: allowed: 1 to {MAX_INDIVIDUALS}")
        if not _WORDS.fullmatch(self.system):
            raise ConfigError(f"system prompt id {self.system!r}: allowed: lower-case letters, digits and hyphens")
        check_system(self.system, self.system_text)
        if not 0 <= self.reserve < self.token_budget:
            raise ConfigError(
                f"token budget {self.token_budget} with a reserve of {self.reserve} for the answer: allowed: a reserve from 0 to less "
                "than the budget"
            )

    @property
    def reserve(self) -> int:
        """Tokens kept for the response."""
        return self._compute_usual_reserve() if self.answer_reserve is None else self.answer_reserve

    @property
    def answer_tokens(self) -> int | None:
        """The smallest token limit that the response needs, or None if the model's setting is enough."""
        return self.reserve if self.reserve > _STANDARD_RESERVE else None

    def order_of(self, count: int) -> list[int]:
        """Return the survey's index of the option at each place of the list of `count` options."""
        if self.option_order == "reversed":
            return list(range(count))[::-1]
        turn = 0 if self.option_order == "given" else int(self.option_order.removeprefix("rotated-"))
        return [(turn + place) % count for place in range(count)]

    @property
    def condition(self) -> str:
        """These options without the context levels, in short: `distribution/attribute-label`, `batch=3/narrative+cot+reversed`.

        `parse_condition` reads it back. Defaults are omitted, except the task and the format.
        """
        numbers = {"batch": self.batch_size, "synthetic-individuals": self.individuals}
        task = f"{self.task}={numbers[self.task]}" if self.task in numbers else self.task
        usual = BlueprintOptions()
        flags = {
            self.profile: self.profile != usual.profile,
            self.reasoning: self.reasoning != usual.reasoning,
            "structured": self.structured,
            self.option_order: self.option_order != usual.option_order,
            f"system={self.system}{_hash_wording(self.system_text)}": self.system != usual.system,
            self.selection: self.selection != usual.selection,
            f"seed={self.seed}": self.seed != usual.seed and self.selection == "random",
            "show-n": self.show_n,
            f"tokens={self.token_budget}": self.token_budget != usual.token_budget,
            f"reserve={self.reserve}": self.reserve != self._compute_usual_reserve(),
        }
        return "+".join([f"{task}/{self.format}", *(flag for flag, differs in flags.items() if differs)])

    @property
    def recipe(self) -> str:
        """All options except the context levels, as JSON, from which a level can be built again."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "context_levels"}, sort_keys=True)

    @classmethod
    def parse_recipe(cls, recipe: str, context_levels: Iterable[str]) -> BlueprintOptions:
        return cls(context_levels=tuple(context_levels), **json.loads(recipe))

    @classmethod
    def parse_condition(
        cls, condition: str, context_levels: Iterable[str] = ("0",), system_prompts: Mapping[str, str] | None = None
    ) -> BlueprintOptions:
        """Return the options of a condition. `system_prompts`: texts of system prompts that are not shipped, by id.

        The format may be omitted (`shift+cot`), and so may the task's number (`batch`). Raises ConfigError for a word that is unknown, has
        no effect or contradicts another.
        """
        head, *flags = condition.strip().split("+")
        named, _, form = head.partition("/")
        task, _, number = named.partition("=")
        options: dict[str, Any] = {"task": task} | ({"format": form} if form else {})
        if "=" in named:
            if task not in ("batch", "synthetic-individuals"):
                raise ConfigError(f"condition {condition!r}: the task {task} takes no number")
            options["batch_size" if task == "batch" else "individuals"] = _parse_whole(condition, named, number)
        for flag in flags:
            settings = _parse_flag(condition, flag)
            if repeats := settings.keys() & options.keys():
                raise ConfigError(f"condition {condition!r}: {flag!r} gives the {min(repeats).replace('_', ' ')} a second time")
            options |= settings
        system, _, trace = options.pop("system", "default").partition("~")
        words = (system_prompts or {}).get(system, "")
        if trace and words and _hash_wording(words) != f"~{trace}":
            raise ConfigError(
                f"condition {condition!r}: the system prompt {system!r} has changed: write {system}{_hash_wording(words)}"
            )
        return cls(tuple(context_levels), **options, system=system, system_text=words)

    def _compute_usual_reserve(self) -> int:
        answer = {
            "synthetic-individuals": _TOKENS_AN_INDIVIDUAL * self.individuals,
            "batch": _TOKENS_A_QUESTION * self.batch_size,
        }
        thinking = _THINKING_TOKENS if self.reasoning == "cot" else 0
        return max(_STANDARD_RESERVE, answer.get(self.task, 0)) + thinking


def _hash_wording(words: str) -> str:
    """Return a suffix that identifies the text of a user's system prompt; empty for shipped prompts, whose text is fixed."""
    return f"~{digest(words)[:6]}" if words else ""


_PLAIN_FLAGS: Mapping[str, Mapping[str, Any]] = {
    "cot": {"reasoning": "cot"},
    "structured": {"structured": True},
    "reversed": {"option_order": "reversed"},
    "random": {"selection": "random"},
    "show-n": {"show_n": True},
    "population": {"profile": "population"},
}
_NUMBER_FLAGS = {"seed": "seed", "tokens": "token_budget", "reserve": "answer_reserve"}
CONDITION_WORDS = (*_PLAIN_FLAGS, "rotated-N", "system=ID", *(f"{number}=N" for number in _NUMBER_FLAGS))
"""What a condition may say after its task and format, each after a plus."""


def _parse_flag(condition: str, flag: str) -> Mapping[str, Any]:
    name, _, value = flag.partition("=")
    if flag in _PLAIN_FLAGS:
        return _PLAIN_FLAGS[flag]
    if flag.startswith("rotated-"):
        return {"option_order": flag}
    if name in _NUMBER_FLAGS:
        return {_NUMBER_FLAGS[name]: _parse_whole(condition, flag, value)}
    if name == "system":
        return {"system": value}
    raise ConfigError(
        f"condition {condition!r}: unknown word {flag!r}; allowed after the task and format: {', '.join(CONDITION_WORDS)}"
    )


def _parse_whole(condition: str, word: str, number: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise ConfigError(f"condition {condition!r}: {word!r} needs a whole number")
    return int(number)
