"""Judges: a model and its approach, as named by users, and the hash by which judgements of two runs can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.asking.makers import find_maker
from dtef_pipeline.asking.models import Models, ModelSpec, strip_settings
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.consensus import FIVE_CLASSES, ClassScale
from dtef_pipeline.judging.prompts import APPROACHES, PROMPT_AWARE, STANDARD, hash_template

JUDGES = "judges"
"""The collection of default judge models."""
JUDGE_SETTINGS: Mapping[str, float] = {"temperature": 0.0, "max_tokens": 2048}
"""Default sampling of a judge. The temperature is not sent to a model whose entry sets `temperature: null`."""
REPLY_CONTRACT = 2
"""Version of the form of replies and of the rules that read them. Other rules could read another class from a stored reply."""
USUAL_APPROACHES = (STANDARD, PROMPT_AWARE)


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """One judge. Raises ConfigError for an unknown approach or a model without a server."""

    approach: str
    """standard | prompt-aware | holistic."""
    model: ModelSpec
    """With its sampling parameters as a judge."""
    scale: ClassScale = FIVE_CLASSES
    """The judge's classes."""

    def __post_init__(self) -> None:
        if self.approach not in APPROACHES:
            raise ConfigError(f"approach {self.approach!r} of judge {self.model.name!r}: allowed: {', '.join(APPROACHES)}")
        if self.model.is_computed or self.model.is_local:
            raise ConfigError(f"judge {self.model.name!r}: got a model without a server; allowed: a language model")

    @property
    def name(self) -> str:
        """`standard(gpt-4.1-mini)`, or on an unusual scale `standard(gpt-4.1-mini)[scale:10]`, to keep the scales apart."""
        name = f"{self.approach}({self.model.name})"
        return name if self.scale == FIVE_CLASSES else f"{name}[scale:{self.scale.size}]"


def configure_judges(approach: str, selector: str, models: Models) -> tuple[JudgeConfig, ...]:
    """Return the judges of one approach that a model, a collection or a litellm string selects, without duplicate variants.

    Temperature 0 and 2,048 tokens, unless the selector sets them: `gpt-4.1-mini@max_tokens=4096`. Raises ConfigError for an invalid
    approach or selector.
    """
    selected_settings = selector.removeprefix(strip_settings(selector))
    settings = {key: value for key, value in JUDGE_SETTINGS.items() if f"{key}=" not in selected_settings}
    return tuple(JudgeConfig(approach, _configure_judging(spec, settings, models)) for spec in models.resolve([selector]))


def parse_judges(options: Sequence[str], models: Models) -> tuple[JudgeConfig, ...]:
    """Return the judges of `--judge APPROACH=MODEL`, such as `standard=gpt-4.1-mini`, without duplicates.

    Raises ConfigError with the invalid option and the allowed approaches.
    """
    judges: list[JudgeConfig] = []
    for option in options:
        approach, equals, selector = option.partition("=")
        if not equals or approach not in APPROACHES or not selector:
            raise ConfigError(
                f"judge {option!r}: allowed: APPROACH=MODEL, where the approach is one of {', '.join(APPROACHES)}"
            )
        judges += configure_judges(approach, selector, models)
    return remove_repeated_judges(judges)


def default_judges(models: Models) -> tuple[JudgeConfig, ...]:
    """Return a standard and a prompt-aware judge for each model of the collection `judges`.

    Raises ConfigError, with the fix, if the collection is missing or empty.
    """
    if not models.collections.get(JUDGES):
        raise ConfigError(
            f"no judge is named: the models files have no collection {JUDGES!r} with a model in it. "
            f"Add one (collections: {{{JUDGES}: [gpt-4.1-mini]}}), or name judges: --judge standard=gpt-4.1-mini"
        )
    members = [(approach, member) for member in models.collections[JUDGES] for approach in USUAL_APPROACHES]
    return remove_repeated_judges(judge for approach, member in members for judge in configure_judges(approach, member, models))


def consensus_id(names: Iterable[str]) -> str | None:
    """Return the source of a point's score, from the names of judges that gave a class: `consensus(standard(a), prompt-aware(b))`.

    Names are listed once, in the given order; one judge is only its name, no judge is None.
    """
    judges = list(dict.fromkeys(names))
    return f"consensus({', '.join(judges)})" if len(judges) > 1 else next(iter(judges), None)


def judge_hash(judges: Iterable[tuple[str, str]], scale: ClassScale) -> str:
    """Return the hash of everything that decides how a text is judged: judges in any order, their prompts, the scale, the reading rules.

    `judges`: (approach, model variant) of each, as in a table of judgements; model names, prices and addresses are not included.
    """
    judge_entries = sorted((approach, variant, hash_template(approach, scale)) for approach, variant in judges)
    class_entries = [[entry.name, entry.number] for entry in scale.classes]
    return digest("judges", judge_entries, class_entries, REPLY_CONTRACT)


def replace_sampling(spec: ModelSpec, settings: Mapping[str, Any]) -> ModelSpec:
    """Return the model under its own name with other sampling parameters, hence as another variant."""
    values = {key: getattr(spec, key) for key in spec.model_fields_set}
    return ModelSpec.model_validate({**values, **settings})


def remove_repeated_judges(judges: Iterable[JudgeConfig]) -> tuple[JudgeConfig, ...]:
    """Remove judges with the same approach and variant as an earlier one.

    Raises ConfigError if two models that would share their responses have different addresses.
    """
    first: dict[tuple[str, str], JudgeConfig] = {}
    specs: dict[str, ModelSpec] = {}
    for judge in judges:
        first.setdefault((judge.approach, judge.model.variant), judge)
        earlier = specs.setdefault(judge.model.variant, judge.model)
        if earlier.api_base != judge.model.api_base:
            raise ConfigError(
                f"judges {earlier.name!r} and {judge.model.name!r} are both {judge.model.variant}, but at different addresses; "
                "their judgements could not be distinguished. Name one of them, or change the settings of one, such as "
                f"{judge.model.name}@seed=1"
            )
    return tuple(first.values())


def _configure_judging(spec: ModelSpec, settings: Mapping[str, float], models: Models) -> ModelSpec:
    """Return the model under its own name, with its settings as a judge."""
    if spec.is_computed or spec.is_local:
        return spec
    sampling = {key: value for key, value in settings.items() if key != "temperature" or spec.temperature is not None}
    (judging,) = models.resolve([spec.name], sampling)
    return judging.model_copy(update={"name": spec.name})


def is_self_judged(judge: str, subject: str, own_servers: Collection[str] = ()) -> bool:
    """Return whether judge and subject, as model strings or variants, have one maker or, if either maker is unknown, are one model.

    `own_servers`: the model strings of models with their own server address (see `Models.own_servers`).
    """
    judge, subject = (model.partition("[")[0] for model in (judge, subject))
    maker, subject_maker = (find_maker(model, own_server=model in own_servers) for model in (judge, subject))
    return judge == subject or (maker is not None and maker == subject_maker)
