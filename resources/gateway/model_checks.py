"""Checks of models before any call: key, package, price, and whether the provider is sent the settings that the user asked for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dtef_pipeline.asking.models import OPENAI, ModelSpec, format_setting, redact_address
from dtef_pipeline.errors import GatewayError
from dtef_pipeline.text.number_words import list_first_names
from resources.gateway.budget import Accounts
from resources.gateway.direct_transport import is_direct
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import UNKNOWN_PROVIDER, LitellmTransport, find_unknown_provider
from resources.gateway.local_model import LocalTransport
from resources.gateway.prices import price
from resources.gateway.transport import Scrubber, build_sampling_body
from resources.responses.store import ResponseStore


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


_SNAPSHOTS_NAMED = 3


def refuse(problems: Mapping[str, str | None]) -> None:
    """Raise GatewayError if there is a problem. `problems`: by model name, None for no problem."""
    names_by_problem = defaultdict[str, list[str]](list)
    for name, problem in problems.items():
        if problem:
            names_by_problem[problem].append(name)
    if faults := [f"{', '.join(names)}: {problem}" for problem, names in names_by_problem.items()]:
        raise GatewayError(f"no request was sent, because these models cannot be asked: {'; '.join(faults)}")


def find_quick_problem(spec: ModelSpec, environ: Mapping[str, str]) -> str | None:
    """Return what is missing to call the model, or None if a quick look finds nothing.

    litellm, whose import takes seconds, is consulted only if neither the models file nor the usual name of the provider's key suffices.
    """
    if spec.is_computed:
        return None
    if spec.is_local:
        return LocalTransport().problem(spec)
    usual = f"{spec.model.partition('/')[0].upper()}_API_KEY"
    if not spec.api_key_env and not spec.api_base and environ.get(usual, "").strip():
        return None
    return LitellmTransport(environ).problem(spec)


def add_stored_snapshots(spec: ModelSpec, problem: str | None, store: ResponseStore) -> str | None:
    """Return the problem, and the snapshots with stored responses of the model, if any: those can be used without a call.

    If no provider is known, the model has stored responses only, and the snapshots are all that can be said.
    """
    labels = store.find_snapshots(spec.variant) if problem else []
    if not labels:
        return problem
    named = list_first_names(labels, _SNAPSHOTS_NAMED)
    if problem == UNKNOWN_PROVIDER:
        return f"there are only stored responses, in snapshot {named}; choose such a snapshot, or other models"
    return f"{problem}; there are stored responses in snapshot {named}: choose such a snapshot, or another model"


def refuse_unknown_providers(models: Iterable[ModelSpec], store: ResponseStore) -> None:
    """Raise GatewayError for a model whose provider litellm does not know, which a run would refuse, with or without keys."""
    specs = {spec.name: spec for spec in models if is_translated(spec) and not (spec.api_key_env or spec.api_base)}
    problems = {name: find_unknown_provider(spec) for name, spec in specs.items()}
    refuse({name: add_stored_snapshots(specs[name], text, store) for name, text in problems.items()})


def refuse_early(
    models: Iterable[ModelSpec],
    snapshot: str,
    accounts: Accounts,
    store: ResponseStore,
    environ: Mapping[str, str],
    *,
    look_up_prices: bool = False,
) -> None:
    """Reject, before prompts are made, what the gateway would refuse before its first call.

    Models with responses in the snapshot are left to the gateway: all required responses may be stored. `look_up_prices`: also look up
    prices in litellm's list, whose import takes seconds; it lacks models at their own address.

    Raises:
        GatewayError: a required model cannot be called: no key, no package, no price under a limit in dollars; or two models would send
            the same request.
    """
    specs = [spec for spec in models if not spec.is_computed]
    problems = {spec.name: problem for spec in specs if (problem := find_quick_problem(spec, environ))}
    priced_specs = [spec for spec in specs if (spec.api_base or look_up_prices) and accounts.is_price_needed(spec.name)]
    no_price = [spec for spec in priced_specs if price(spec) is None]
    new = {spec.name for spec in specs if (spec.name in problems or spec in no_price) and not store.has(spec.variant, snapshot)}
    refuse({spec.name: add_stored_snapshots(spec, problems.get(spec.name), store) for spec in specs if spec.name in new})
    new_specs = [spec for spec in specs if is_translated(spec) and not store.has(spec.variant, snapshot)]
    refuse_same_sent(specs if new_specs else (), new_specs)
    accounts.refuse_unpriced((spec, None) for spec in no_price if spec.name in new)


def resolve_route(spec: ModelSpec, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return how a model is called (direct, litellm, local for a model in this process, or empty if none is called), and the address of the
    user's own server, without passwords and keys of the environment; empty for a provider's.
    """
    if spec.is_computed or spec.is_local:
        return "local" if spec.is_local else "", ""
    # Redacted before the scrubber shortens it, and again because the scrubber writes [key] for what it removes.
    address = redact_address(Scrubber(environ, [spec])(redact_address(spec.api_base))) if spec.api_base else ""
    return "direct" if is_direct(spec) else "litellm", address
