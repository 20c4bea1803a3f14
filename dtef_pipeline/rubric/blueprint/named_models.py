"""The models that a blueprint names: `provider:model`, or a collection, which is a list of such names in another file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.blueprint.blueprint_yaml import YamlFault, read_json, read_yaml
from dtef_pipeline.rubric.blueprint.findings import HEADER_PLACE, UNKNOWN_MODEL_CODES, FindingLog, Spot, shorten_value

Collections = Mapping[str, Sequence[str]]
"""Names of models, or of other collections, by the name of the collection."""
USUAL_COLLECTION = "CORE"
LITELLM_PROVIDERS: Mapping[str, str] = {"google": "gemini", "together": "together_ai"}
"""LiteLLM's names of providers that differ from those of blueprints; openrouter, openai, anthropic, mistral and xai are the same in both."""
JUDGING_APPROACHES = ("standard", "prompt-aware", "holistic")
_COLLECTION_SUFFIXES = (".json", ".yml", ".yaml")
_CUSTOM_KEYS = frozenset({"url", "modelName", "inherit"})


def read_collections(folder: Path) -> dict[str, tuple[str, ...]]:
    """Read the collections of a folder: each JSON or YAML file contains a list of names, and its name is the collection's.

    Raises ConfigError if the folder is missing or a file is not a list of texts.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; allowed: a folder with a file per collection, such as CORE.json")
    return {path.stem: _read_members(path) for path in sorted(folder.iterdir()) if path.suffix in _COLLECTION_SUFFIXES}


def _read_members(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = (read_json if path.suffix == ".json" else read_yaml)(text).values
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a readable collection of models: {error}") from error
    except YamlFault as error:
        raise ConfigError(f"{path}:{error.line or 1}: not a readable collection of models: {error.problem}") from error
    names = values[0] if values else []
    if len(values) > 1 or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{path}: got {shorten_value(names)}; allowed: a list of texts such as openai:gpt-4o")
    return tuple(names)


def convert_to_litellm_name(name: str) -> str:
    """Convert `google:gemini-2.5-flash` to litellm's `gemini/gemini-2.5-flash`."""
    provider, _, model = name.partition(":")
    return f"{LITELLM_PROVIDERS.get(provider, provider)}/{model}"


def read_models(header: Mapping[str, Any], collections: Collections | None, log: FindingLog) -> tuple[str, ...]:
    """Return the models of a header as litellm strings, in order and without duplicates. `collections`: None if unknown."""
    names = header.get("models")
    names = [names] if isinstance(names, (str, dict)) else names
    if names is not None and not isinstance(names, list):
        log.add_in_header("bad-header", header, "models", f"models is {shorten_value(names)}; write a list")
        return ()
    before = len(log.findings)
    if not names:
        names = [USUAL_COLLECTION]
        log.add_in_header("no-models", header, "models", f"no models are named: those of {USUAL_COLLECTION} are used")
    models: dict[str, None] = {}
    for place, value in enumerate(names):
        spot = log.find_member_place(HEADER_PLACE, names, place)
        if spot.line is None:
            spot = log.find_member_place(HEADER_PLACE, header, "models")
        for name in _read_entry(value, spot, collections, log):
            if name in models:
                log.add_in_header("model-twice", header, "models", f"{name} is named more than once and is used once")
            models[name] = None
    wrong = any(finding.level == "error" or finding.code in UNKNOWN_MODEL_CODES for finding in log.findings[before:])
    if not models and not wrong:
        text = "every named collection is empty; name a model, or give --model to the run"
        log.add_in_header("no-models-left", header, "models", text)
    return tuple(convert_to_litellm_name(name) for name in models)


def _read_entry(value: Any, spot: Spot, collections: Collections | None, log: FindingLog) -> Iterator[str]:
    """Yield the models of one entry of the list: itself, or the members of a collection."""
    if isinstance(value, str):
        yield from _read_model_text(value.strip(), (), spot, collections, log)
    elif isinstance(value, dict) and (name := read_model_name(value)) is not None:
        yield name
    elif isinstance(value, dict) and _CUSTOM_KEYS & value.keys():
        _refuse_address(value, spot, log)
    else:
        log.add("unknown-collection", spot, f"{shorten_value(value)} is not a model; write `provider:model`")


def _read_model_text(
    name: str, parents: tuple[str, ...], spot: Spot, collections: Collections | None, log: FindingLog
) -> Iterator[str]:
    if ":" in name:
        yield name
        return
    if collections is None and "/" not in name and name:
        text = f"{shorten_value(name)} is a collection of models without a known folder: give --models-dir here, or --model to the run"
        log.add("no-collections", spot, text)
        return
    members = (collections or {}).get(name)
    if members is None or name in parents:
        provider, _, model = name.partition("/")
        hint = f"; write `{provider}:{model}`" if model else ""
        known_names = ", ".join(sorted(collections or ())) or "none"
        text = f"{shorten_value(name) or 'an empty text'} is neither `provider:model` nor a collection{hint}"
        log.add("unknown-collection", spot, f"{text}; collections: {known_names}")
        return
    if not members:
        log.add("empty-collection", spot, f"the collection {name} has no models")
    for member in members:
        yield from _read_model_text(member, (*parents, name), spot, collections, log)


def _refuse_address(value: Mapping[str, Any], spot: Spot, log: FindingLog) -> None:
    name = str(value.get("id", "my-model")).rpartition(":")[2]
    base = str(value.get("url", "https://...")).removesuffix("/chat/completions")
    entry = f"{{models: {{{name}: {{model: openai/{value.get('modelName', name)}, api_base: {base}}}}}}}"
    log.add("custom-model", spot, f"{shorten_value(name)} has an address; add {entry} to models.yaml, and use --model {name}")


def read_model_name(value: Any) -> str | None:
    """Return `provider:model` from a text or from the mapping of `- openai: gpt-4o`, or None if it is neither."""
    if isinstance(value, dict) and len(value) == 1:
        ((provider, model),) = value.items()
        return f"{provider.strip()}:{model.strip()}" if isinstance(model, str) and provider not in _CUSTOM_KEYS else None
    return value.strip() if isinstance(value, str) and ":" in value else None


def read_judges(header: Mapping[str, Any], log: FindingLog) -> tuple[str, ...]:
    """Return the judges of `evaluationConfig.llm-coverage.judges` as `approach=model` (litellm strings); none: the default judges."""
    settings = header.get("evaluationConfig")
    coverage = settings.get("llm-coverage") if isinstance(settings, dict) else None
    if not isinstance(coverage, dict):
        return ()
    for key in coverage:
        if key in ("judgeModels", "judgeMode", "backupJudge", "backupJudges"):
            log.add_in_header("deprecated-judges", coverage, key, f"`{key}` is not used; write `judges:`")
    judges = coverage.get("judges")
    if judges is None:
        return ()
    if not isinstance(judges, list):
        log.add_in_header("bad-judge", coverage, "judges", f"judges is {shorten_value(judges)}; write a list")
        return ()
    read = [_judge(value, log, log.find_member_place(HEADER_PLACE, judges, place)) for place, value in enumerate(judges)]
    return tuple(dict.fromkeys(judge for judge in read if judge is not None))


def _judge(value: Any, log: FindingLog, spot: Spot) -> str | None:
    values = value if isinstance(value, dict) else {"model": value}
    name, approach = read_model_name(values.get("model")), values.get("approach", JUDGING_APPROACHES[0])
    if name is None or approach not in JUDGING_APPROACHES:
        choices = f"{{model: provider:model, approach: {' | '.join(JUDGING_APPROACHES)}}}"
        log.add("bad-judge", spot, f"the judge {shorten_value(value)} cannot be read; allowed: {choices}")
        return None
    return f"{approach}={convert_to_litellm_name(name)}"
