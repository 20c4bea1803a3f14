"""The available models: one `ModelSpec` per model, read from YAML, selected by name, collection or litellm string.

All parts of a file are optional. Later files add to earlier ones; a model replaces an earlier one of the same name as a whole:

    collections:
      core: [gpt-4.1-mini, claude-haiku]
    models:
      gpt-4.1-mini: {model: openai/gpt-4.1-mini, temperature: 0, api_key_env: OPENAI_API_KEY, budget: {max_cost_usd: 5}}

A selector may override settings: `gpt-4.1-mini@max_tokens=512,temperature=0.7`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dtef_pipeline.documents import Document, format_in_one_line, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.name_matching import list_nearest, suggest_nearest

_ALLOWED = "an address such as http://127.0.0.1:8000/v1 (http or https, a host, a port from 1 to 65535)"
_HOST = re.compile(r"[^\s/\\?#@]+")
_BEFORE_HOST = re.compile(r"(?:[A-Za-z][\w+.-]*:)?/+")
_PARAMETERS = re.compile(r"[?#](?=[\w.~%-]+=|[^@]*\Z)")
"""Start of the parameters. A `?` before an `@` starts them only if `name=` follows; otherwise it is part of a password."""


def web_address(text: str) -> str:
    """Return the text unchanged. Raises ValueError if it is not the address of a web server."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(_HOST.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:  # a port that is not a number or beyond 65535, half an IPv6 address
        good = False
    if not good or any(character.isspace() for character in text):
        raise ValueError(f"got {redact_address(text)}; allowed: {_ALLOWED}")
    return text


def redact_address(address: str) -> str:
    """Return the address without name, password and parameters: `http://[...]@host/v1`.

    An unquoted password may contain any of `/@?#`, so everything before the last `@` is redacted.
    """
    start, base = _BEFORE_HOST.match(address), _PARAMETERS.split(address, maxsplit=1)[0]
    prefix = start.group() if start else ""
    _, separator, place = base.removeprefix(prefix).rpartition("@")
    return f"{prefix}[...]@{place}" if separator else base


Address = Annotated[str, AfterValidator(web_address)]
"""A setting whose value is a server address."""


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


COMPUTED = "baseline/"
"""Prefix of models whose predictions are computed from the data, without a server. `load_models` takes their list."""
COMPUTED_SQL = f"starts_with(model_variant, '{COMPUTED}')"
"""Whether a row is of such a model, in SQL."""
OPENAI = "openai/"
"""Prefix of models that are called by OpenAI's protocol, at OpenAI or at a compatible server."""
OPENROUTER = "openrouter/"
"""Prefix of models that are called through OpenRouter, which forwards requests to several hosts."""
LOCAL_EMBEDDER = "local/minilm-l6-int8"
LOCAL_MODELS = ("local/smollm2-135m", LOCAL_EMBEDDER)

# The settings of a model without a server; the others concern servers and would silently have no effect.
_COMPUTED_KEYS = frozenset({"name", "model", "seed", "description"})
_LOCAL_KEYS = frozenset({"name", "model", "temperature", "description"})

_TOP_LEVEL = ("collections", "models")
_MEMBERS = {"collections": "collection", "models": "model"}
_Text = Annotated[str, Field(min_length=1, pattern=r"^\S(.*\S)?$")]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Price = Annotated[float, Field(ge=0)]


class _Settings(BaseModel):
    """Values from a file or a command line. Unknown keys, infinity, NaN, and booleans in place of numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError(f"true and false are not values of this setting (null: not sent), got {value}")
        return value


class Budget(_Settings):
    """Limits on what a run may use; None means no limit. They do not affect responses, so they are not part of a variant."""

    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
    """Number of calls, including retries; 0 replays stored responses and sends nothing."""
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens of prompts and responses together."""


class ModelSpec(_Settings):
    """A model with its parameters: what is requested (`variant`) and how the model is reached (the rest)."""

    name: _Text
    model: _Text
    """A litellm model string (`openai/gpt-4.1-mini`), `baseline/...` (computed) or `local/...`."""
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    max_tokens: Annotated[int, Field(ge=1)] | None = 256
    """Enough for one distribution and a few words. Another default would change all variants, and all responses would be paid for again."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    reasoning_effort: _Text | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    provider: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")] | None = None
    """The only host through which OpenRouter may serve the model, as its API names it: `deepinfra/fp8`."""
    api_base: Address | None = None
    """Address of an OpenAI-compatible server, up to and including `/v1`."""
    api_key_env: _Text | None = None
    """Name of the environment variable that holds the key. Never the key itself."""
    timeout: Annotated[float, Field(gt=0)] = 120.0
    """Seconds for one call, from sending to the last byte."""
    max_concurrency: Annotated[int, Field(ge=1)] = 16
    retries: Annotated[int, Field(ge=0)] = 6
    input_price: _Price | None = None
    """US dollars per million prompt tokens; with `output_price`, in place of litellm's price list."""
    output_price: _Price | None = None
    cached_input_price: _Price | None = None
    """US dollars per million prompt tokens that the server reads from its cache, in addition to the other two prices; None: the price of
    other prompt tokens."""
    budget: Budget = Budget()
    """Limits of a run for this model."""
    transport: Literal["direct", "litellm"] | None = None
    """How an `openai/` model with an `api_base` is called; None: directly, unless it is an OpenAI model whose parameters litellm translates."""
    description: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _validate_serverless(cls, values: Any, info: ValidationInfo) -> Any:
        """Refuse parameters without effect on models that have no server, and set a seed where one is used."""
        if not isinstance(values, Mapping):
            return values
        model = values.get("model")
        if isinstance(model, str) and is_computed(model):
            _refuse(values, _COMPUTED_KEYS, f"{model} is computed, not asked")
            return {"seed": _get_computed_models(info).get(model), **values, "temperature": None, "max_tokens": None}
        if model in LOCAL_MODELS:
            _refuse(values, _LOCAL_KEYS, f"{model}, which is in this process, does not sample")
            return {**values, "max_tokens": None, "max_concurrency": 1}
        return values

    @model_validator(mode="after")
    def _check_consistency(self, info: ValidationInfo) -> ModelSpec:
        computed_models = _get_computed_models(info) if info.context is not None else {self.model: self.seed}
        for belongs, choices in ((self.is_computed, computed_models), (self.is_local, LOCAL_MODELS)):
            if belongs and self.model not in choices:
                raise ValueError(f"there is no {self.model!r}; known: {', '.join(choices) or 'none'}")
        if self.is_computed and self.seed is not None and computed_models[self.model] is None:
            raise ValueError(f"{self.model} has no randomness, so it takes no seed")
        if self.is_local and self.temperature != 0:
            raise ValueError(f"{self.model} does not sample, so its temperature is 0, not {self.temperature}")
        if self.provider and not self.model.startswith((OPENROUTER, OPENAI) if self.api_base else OPENROUTER):
            raise ValueError(
                f"only OpenRouter takes a provider ({self.provider}); allowed for openrouter/..., or openai/... with its api_base"
            )
        if self.transport == "direct" and not (self.model.startswith(OPENAI) and self.api_base):
            raise ValueError("transport: direct is for a model openai/... with an api_base; others are called by litellm")
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("input_price and output_price are given together or not at all (an embedder has output_price: 0)")
        if self.cached_input_price is not None and (self.input_price is None or self.cached_input_price > self.input_price):
            raise ValueError("cached_input_price needs input_price and output_price, and is at most input_price")
        return self

    @cached_property
    def variant(self) -> str:
        """The model string and the sampling parameters that are set: `openai/gpt-4.1-mini[max_tokens=256,temperature=0]`."""
        settings = {key: getattr(self, key) for key in sorted(SAMPLING)}
        parts = [f"{key}={format_setting(value)}" for key, value in settings.items() if value is not None]
        return f"{self.model}[{','.join(parts)}]" if parts else self.model

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling parameters that are set; a temperature of 0 counts as set."""
        return {key: value for key in SAMPLING if (value := getattr(self, key)) is not None}

    @property
    def is_computed(self) -> bool:
        """Whether the predictions are computed from the data, without a server."""
        return is_computed(self.model)

    @property
    def is_local(self) -> bool:
        return self.model.startswith("local/")


@dataclass(frozen=True)
class Models:
    """The models and collections of all files that were read."""

    specs: Mapping[str, ModelSpec]
    collections: Mapping[str, tuple[str, ...]]
    computed: Mapping[str, int | None] = field(default_factory=dict)
    """As in `load_models`."""
    files_of_none: tuple[str, ...] = ()

    @property
    def own_servers(self) -> frozenset[str]:
        """The model strings of models with a server address of their own (`api_base`)."""
        return frozenset(spec.model for spec in self.specs.values() if spec.api_base)

    def resolve(self, selectors: Sequence[str], settings: Mapping[str, Any] | None = None) -> tuple[ModelSpec, ...]:
        """Return the models that names, collections and bare litellm strings select, each variant once, in order.

        A selector may end in settings, `core@temperature=0.7,max_tokens=512`, for every model it selects. Such a model is named after the
        original with the settings that differ, sorted: `gpt-4.1@max_tokens=512,temperature=0.7`.

        Args:
            selectors: as in `dtef run --model`.
            settings: sampling parameters for all models that are neither computed nor imported (None: not sent).

        Raises ConfigError if a selector is unknown, a setting is invalid, or two models would share their responses.
        """
        specs = [spec for selector in selectors for spec in self._resolve_selector(selector, settings or {})]
        _refuse_shared_variants([*self.specs.values(), *specs])
        first: dict[str, ModelSpec] = {}
        for spec in specs:
            first.setdefault(spec.variant, spec)
        return tuple(first.values())

    def _resolve_selector(self, selector: str, settings: Mapping[str, Any]) -> list[ModelSpec]:
        base, args = (selector, {}) if selector in self.specs else split_selector(selector)
        specs = self._find_specs(base)
        return [self._apply_settings(spec, args if spec.is_computed else {**args, **settings}) for spec in specs]

    def _find_specs(self, selector: str) -> list[ModelSpec]:
        if selector in self.specs:
            return [self.specs[selector]]
        if selector in self.collections:
            return [self.specs[name] for name in self.collections[selector]]
        if selector in self.computed or selector in LOCAL_MODELS or _is_litellm_string(selector):
            return [ModelSpec.model_validate({"name": selector, "model": selector}, context=self.computed)]
        raise self._unknown_model_error(selector)

    def _apply_settings(self, spec: ModelSpec, settings: Mapping[str, Any]) -> ModelSpec:
        """Return the model with other sampling parameters, named after its selector."""
        if not settings:
            return spec
        allowed_keys = _COMPUTED_KEYS if spec.is_computed else _LOCAL_KEYS if spec.is_local else spec.model_fields_set
        values = {key: getattr(spec, key) for key in spec.model_fields_set & allowed_keys}
        where = f"model {spec.name!r} with {format_settings(settings)}"
        if unknown := [key for key in settings if key not in SAMPLING]:
            raise ConfigError(f"{where}: unknown setting {', '.join(map(repr, unknown))}; allowed: {', '.join(SAMPLING)}")
        try:
            model = ModelSpec.model_validate({**values, **settings}, context=self.computed)
        except ValidationError as error:
            raise ConfigError(f"{where}: {format_in_one_line(error, ModelSpec)}") from error
        differing = {key: getattr(model, key) for key in sorted(settings) if getattr(model, key) != getattr(spec, key)}
        return model.model_copy(update={"name": f"{spec.name}@{format_settings(differing)}"}) if differing else spec

    def _unknown_model_error(self, selector: str) -> ConfigError:
        note = "".join(f" ({file} holds none)" for file in self.files_of_none)
        names = {*self.specs, *self.collections, *self.computed, *LOCAL_MODELS}
        return ConfigError(
            f"no model or collection {selector!r}{note}. {suggest_nearest(selector.partition('@')[0], names)}Allowed: a known one "
            "(`dtef models` lists all), or a model string of LiteLLM, such as openai/gpt-4.1-mini; settings follow an @: "
            "openai/gpt-4.1-mini@temperature=0.7"
        )


def strip_settings(selector: str) -> str:
    """Return the selector without its settings: `gpt-4.1-mini` for `gpt-4.1-mini@temperature=0.7`."""
    return split_selector(selector)[0]


def is_computed(model: str) -> bool:
    """Return whether a model string or variant belongs to a model whose predictions are computed, without a server."""
    return model.startswith(COMPUTED)


def load_models(*sources: str | Path, computed: Mapping[str, int | None] | None = None) -> Models:
    """Read model files in order; a model replaces an earlier one of the same name as a whole.

    Args:
        sources: a `Path` is a file to read, a `str` is YAML text.
        computed: the computed models, each with its default seed (None if it has no randomness and takes no seed).

    Raises ConfigError, with the file, the model or collection, the value and the allowed values.
    """
    specs: dict[str, ModelSpec] = {}
    entries: dict[str, tuple[Any, Document]] = {}
    empty_files: list[str] = []
    for number, source in enumerate(sources, start=1):
        document = read_document(source, "model file", _TOP_LEVEL, _MEMBERS, label=f"model text {number}")
        document.mapping((), known_keys=_TOP_LEVEL)
        for name in document.mapping(("models",)):
            specs[str(name)] = _parse_spec(name, document, computed or {})
        for name, members in document.mapping(("collections",)).items():
            entries[str(name)] = (members, document)
        empty_files += [] if any(document.mapping((part,)) for part in _TOP_LEVEL) else [document.where]
    collections = {name: _parse_members(name, members, specs, document) for name, (members, document) in entries.items()}
    _refuse_shared_variants(specs.values())
    return Models(specs=specs, collections=collections, computed=computed or {}, files_of_none=tuple(empty_files))


def _parse_spec(name: Any, document: Document, computed: Mapping[str, int | None]) -> ModelSpec:
    place = ("models", name)
    values = document.mapping(place, known_keys=[field for field in ModelSpec.model_fields if field != "name"])
    model = {"model": name} if "/" in str(name) else {}
    return document.validate_as(ModelSpec, {**model, **values, "name": str(name)}, place, context=computed)


def _parse_members(name: str, members: Any, specs: Mapping[str, ModelSpec], document: Document) -> tuple[str, ...]:
    place = ("collections", name)
    if name in specs:
        raise document.error(place, "a model has this name too; rename one of them")
    if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
        raise document.error(place, f"got {members!r}; allowed: a list of model names")
    for member in members:
        if member not in specs:
            raise document.error(place, f"no model {member!r}; known: {list_nearest(member, specs)}")
    return tuple(dict.fromkeys(members))


def _get_computed_models(info: ValidationInfo) -> Mapping[str, int | None]:
    """Return the computed models passed to `load_models`; empty if a ModelSpec is created directly."""
    return info.context or {}


def _refuse(values: Mapping[str, Any], choices: frozenset[str], because: str) -> None:
    """Raise ValueError for parameters that a model without a server would ignore."""
    excess = [key for key in values if key in ModelSpec.model_fields and key not in choices and values[key] is not None]
    if excess:
        raise ValueError(f"{because}, so it takes no {', '.join(excess)}; allowed: {', '.join(sorted(choices))}")


def _refuse_shared_variants(specs: Iterable[ModelSpec]) -> None:
    """Raise ConfigError if models at two addresses have one variant: responses are stored by variant, which names no server."""
    first: dict[str, ModelSpec] = {}
    for spec in specs:
        earlier = first.setdefault(spec.variant, spec)
        if (spec.api_base or "").rstrip("/") != (earlier.api_base or "").rstrip("/"):
            raise ConfigError(
                f"models {earlier.name!r} and {spec.name!r} are both {spec.variant}, but at different addresses "
                f"({redact_address(earlier.api_base or 'the default')} and {redact_address(spec.api_base or 'the default')}); "
                "their responses would be "
                f"kept as one. To replace {earlier.name!r}, give the new model its name; to have both, let one server "
                "serve it under another model name (vLLM: --served-model-name) or use another provider prefix "
                "(openai/..., hosted_vllm/...)"
            )


def _is_litellm_string(selector: str) -> bool:
    provider, slash, model = selector.partition("/")
    return (
        bool(slash and provider and model)
        and not is_computed(selector)
        and provider != "local"
        and not any(character.isspace() for character in selector)
    )


def resolve_known_selector(selector: str, models: Models) -> str:
    """Return the name of the configured model with this litellm string, and so its address and prices, or else the selector.

    Settings are kept: `openai/gpt-4.1@seed=1` becomes `my-gpt@seed=1`.
    """
    if selector in models.specs or selector in models.collections:
        return selector
    base = strip_settings(selector)
    is_known = base in models.specs or base in models.collections
    name = None if is_known else next((name for name, spec in models.specs.items() if spec.model == base), None)
    return selector if name is None else f"{name}{selector.removeprefix(base)}"
