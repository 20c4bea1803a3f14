"""The models under test: those that a blueprint names or a command chooses, at the temperatures of its prompts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from dtef_pipeline.asking.models import LOCAL_EMBEDDER, Models, ModelSpec, base_selector
from dtef_pipeline.errors import ConfigError

CANDIDATE_TOKENS = 1_500
"""The most tokens of one turn, where the models file does not say otherwise."""


def known_selector(selector: str, models: Models) -> str:
    """The name of the model of the models file that has this litellm string, with its address and prices; else the selector as it is.

    Settings stay as they are: `openai/gpt-4.1@seed=1` becomes `my-gpt@seed=1`.
    """
    if selector in models.specs or selector in models.collections:
        return selector
    base = base_selector(selector)
    known = base in models.specs or base in models.collections
    name = None if known else next((name for name, spec in models.specs.items() if spec.model == base), None)
    return selector if name is None else f"{name}{selector.removeprefix(base)}"


def chosen_selectors(chosen: Sequence[str], blueprint: str, of_file: Sequence[str], found: Collection[str]) -> Sequence[str]:
    """Who is asked: those that were `chosen`, else those `of_file`, which the blueprint names.

    `found`: codes of what was found in the file. Raises ConfigError where they say that it is not known whom the file means.
    """
    if chosen:
        return chosen
    if "no-collections" in found:
        raise ConfigError(
            f"{blueprint} names a collection of models, and no folder of collections was given when it was added: name models with "
            "--model, or add it again with --models-dir"
        )
    if not of_file:
        raise ConfigError(f"{blueprint} names no model that can be asked: name models with --model")
    return of_file


def candidate_names(selectors: Iterable[str], models: Models) -> set[str]:
    """The names of the candidates that selectors stand for; none for one that stands for no model that can be asked."""
    names: set[str] = set()
    for selector in selectors:
        with suppress(ConfigError):
            names.update(Candidates(models, [selector]).names)
    return names


class Candidates:
    """The models that answer a run's prompts, each under the name of its base model whatever the temperature."""

    def __init__(self, models: Models, selectors: Sequence[str]) -> None:
        """`selectors`: names, collections and litellm strings; such a string stands for the model of the models file that has it, if any.

        Raises ConfigError for a selector that stands for no model, and for a model that cannot write a text.
        """
        self._models = models
        self._chosen: dict[str, tuple[str, bool]] = {}
        self._made: dict[tuple[str, float], ModelSpec] = {}
        for selector in selectors:
            own = selector != base_selector(selector) and "temperature=" in selector.rpartition("@")[2]
            for spec in models.resolve([known_selector(selector, models)]):
                if spec.is_computed or spec.model == LOCAL_EMBEDDER:
                    raise ConfigError(
                        f"model {spec.name}: it writes no text, so no rubric can judge it; allowed: a model that is asked"
                    )
                fixed = own or spec.is_local or spec.temperature is None
                self._chosen.setdefault(spec.variant, (spec.name, fixed))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._chosen.values())

    def at(self, temperatures: Iterable[float]) -> list[ModelSpec]:
        """Every model at each temperature, each variant once.

        One that takes no temperature, or was chosen with its own, stands once, as does the local model.
        """
        found = {}
        for name, own in self._chosen.values():
            for temperature in temperatures:
                spec = self._at(name, temperature, own)
                found[spec.variant] = spec
        return list(found.values())

    def _at(self, name: str, temperature: float, own: bool) -> ModelSpec:
        if (name, temperature) not in self._made:
            base = self._models.resolve([name])[0]
            tokens = {} if "max_tokens" in base.model_fields_set else {"max_tokens": CANDIDATE_TOKENS}
            settings = tokens if own else {**tokens, "temperature": temperature}
            made = self._models.resolve([name], settings)[0]
            self._made[name, temperature] = made.model_copy(update={"name": base.name})
        return self._made[name, temperature]
