"""The sampling settings sent to a provider, and their form, by litellm's own mapping, without a call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dtef_pipeline.asking.models import OPENAI, ModelSpec, format_setting
from dtef_pipeline.errors import GatewayError
from resources.gateway.direct_transport import is_direct
from resources.gateway.litellm_module import load_litellm
from resources.gateway.transport import build_sampling_body


def is_translated(spec: ModelSpec) -> bool:
    """Return whether litellm decides what is sent; otherwise every setting is sent unchanged, or nothing at all."""
    return not (spec.is_computed or spec.is_local or is_direct(spec))


def build_sent_body(spec: ModelSpec, *exclusions: str) -> dict[str, Any]:
    """Return the sampling parameters of the request body as litellm sends them, without these settings of the model.

    Raises litellm's exception for a value that it cannot translate.
    """
    settings = {key: value for key, value in build_sampling_body(spec).items() if key not in exclusions}
    if not is_translated(spec):
        return settings
    litellm = load_litellm()
    host_settings = {key: settings.pop(key) for key in ("provider",) if key in settings}
    # LiteLLM has no list of parameters for the user's own server, so all are sent, and the server decides.
    options = {"allowed_openai_params": list(settings)} if spec.api_base else {}
    model, provider, *_ = litellm.get_llm_provider(spec.model)
    body = litellm.utils.get_optional_params(model=model, custom_llm_provider=provider, drop_params=True, **options, **settings)
    return {**body, **host_settings}


def find_altered_settings(spec: ModelSpec) -> dict[str, str | None]:
    """Return, for each setting not sent as configured, the text sent instead, or None if nothing is."""
    if not is_translated(spec):
        return {}
    bodies = {key: _try_body(spec, key) for key in spec.sampling if key != "provider"}
    if (full := _try_body(spec)) is None:
        return {}
    extras = {key: _find_added(full, body) for key, body in bodies.items() if body is not None}
    expected = {key: {spec.sampling[key], "disabled" if spec.sampling[key] == "none" else spec.sampling[key]} for key in extras}
    return {
        key: _format_value(addition) if addition else None
        for key, addition in extras.items()
        if expected[key].isdisjoint(_iterate_leaves(addition))
    }


def describe_altered_settings(specs: Iterable[ModelSpec]) -> Iterator[str]:
    """Yield a line for each model with dropped settings, and for each setting sent differently."""
    for spec in specs:
        changes = find_altered_settings(spec)
        if missing := [key for key, value in changes.items() if value is None]:
            direct = ", or `transport: direct` to send it" if spec.api_base and spec.model.startswith(OPENAI) else ""
            yield (
                f"{spec.name}: the provider takes no {' and no '.join(missing)}, so {'it is' if len(missing) == 1 else 'they are'} not sent; "
                f"in the models file say {' and '.join(f'`{key}: null`' for key in missing)}{direct}"
            )
        for key, value in changes.items():
            if value is not None:
                yield f"{spec.name}: {key}={format_setting(spec.sampling[key])} is sent as {value}"


def refuse_same_sent(specs: Iterable[ModelSpec], models: Iterable[ModelSpec]) -> None:
    """Raise GatewayError if one of `models` sends the provider the same request as another of `specs`."""
    new = {spec.variant for spec in models}
    first: dict[str, ModelSpec] = {}
    for spec in {spec.variant: spec for spec in specs if is_translated(spec)}.values():
        if (sent_body := _try_body(spec)) is None:
            continue
        body = json.dumps([spec.model, spec.api_base, sent_body], sort_keys=True, default=str)
        earlier = first.setdefault(body, spec)
        if earlier is not spec and {earlier.variant, spec.variant} & new:
            changes = "; ".join(describe_altered_settings([earlier, spec]))
            raise GatewayError(
                f"{earlier.name} and {spec.name} send the provider the same request, so one model would be paid for twice and ranked as two; "
                f"name one of them ({changes})"
            )


def _try_body(spec: ModelSpec, *exclusions: str) -> dict[str, Any] | None:
    """Return `build_sent_body`, or None if litellm cannot translate a value, and each call fails."""
    try:
        return build_sent_body(spec, *exclusions)
    except Exception:  # litellm raises many types
        return None


def _find_added(full: Any, part: Any) -> Any:
    """Return the entries of nested mappings that the other ones lack."""
    if not isinstance(full, Mapping) or not isinstance(part, Mapping):
        return full
    return {key: _find_added(value, part.get(key)) for key, value in full.items() if key not in part or part[key] != value}


def _iterate_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _iterate_leaves(item)
    elif not isinstance(value, bool):
        yield value


def _format_value(addition: Mapping[str, Any]) -> str:
    """Format as in a body, without quotes: `reasoning_effort: high`."""
    return json.dumps(addition)[1:-1].replace('"', "")
