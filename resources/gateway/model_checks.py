"""Checks whether models can be called, as far as known without a call: key, package, price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from dtef_pipeline.asking.models import ModelSpec, redact_address
from dtef_pipeline.errors import GatewayError
from dtef_pipeline.text.number_words import list_first_names
from resources.gateway.budget import Accounts
from resources.gateway.direct_transport import is_direct
from resources.gateway.litellm_transport import UNKNOWN_PROVIDER, LitellmTransport, find_unknown_provider
from resources.gateway.local_model import LocalTransport
from resources.gateway.prices import price
from resources.gateway.request_settings import is_translated, refuse_same_sent
from resources.gateway.transport import Scrubber
from resources.responses.store import ResponseStore

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
