"""The models file, the keys, and the panel with what it asks, as `dtef doctor` looks at them. Nobody is asked, and no key is shown."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from assets.survey.panel_file import checked_panel, known_panel
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, Budget, Models, ModelSpec
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.selection import BUDGETS
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.panel import Panel
from dtef_pipeline.text.counted import counted
from resources.gateway.askable import quick_problem
from resources.gateway.budget import Accounts
from resources.gateway.local_embedder import local_problem
from resources.gateway.prices import price
from resources.gateway.reached import reached
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

_UNSET = re.compile(r"environment variable (\S+) is not set")
_BY = {"direct": "directly:", "litellm": "by litellm:"}
_MEND_PANEL = "mend the file that DTEF_PANEL names (docs/nightly.md says what it may hold), or go on without: unset DTEF_PANEL"


def check_models(settings: Settings) -> Iterator[Diagnosis]:
    """The models file, the keys, and the panel with what it asks."""
    try:
        models = known_models(settings, BASELINES)
    except DtefError as error:
        remedy = "mend the file that DTEF_MODELS names, or go on without: unset DTEF_MODELS"
        yield Diagnosis("models file", "problem", str(error), remedy)
        yield _panel_alone(settings)
        return
    own = f"{settings.models} and the shipped one" if settings.models else "the shipped one (DTEF_MODELS is not set)"
    yield Diagnosis(
        "models file", "ok", f"{own}: {counted(len(models.specs), 'model')}, {counted(len(models.collections), 'collection')}"
    )
    asked = [
        spec for spec in models.specs.values() if not (spec.is_computed or spec.is_imported) and spec.model != LOCAL_EMBEDDER
    ]
    yield from _keys({spec.name: quick_problem(spec, os.environ) for spec in asked})
    yield from _own_servers(asked)
    problem = local_problem()
    yield Diagnosis("offline embedder", "ok", problem or f"{LOCAL_EMBEDDER} can embed texts")
    yield _panel(settings, models)


def _keys(problems: Mapping[str, str | None]) -> Iterator[Diagnosis]:
    """Which models can be asked, and what the others lack."""
    able = [name for name, problem in problems.items() if problem is None]
    lacking: dict[str, list[str]] = defaultdict(list)
    for name, problem in problems.items():
        if problem:
            lacking[problem].append(name)
    if able:
        yield Diagnosis("models to ask", "ok", f"{len(able)} of {len(problems)} can be asked now: {', '.join(able)}")
    else:
        key = next((found[1] for problem in lacking if (found := _UNSET.fullmatch(problem))), "OPENAI_API_KEY")
        remedy = f"set the key of a provider, such as: export {key}=KEY; or install the local model, or name a server of yours in DTEF_MODELS"
        yield Diagnosis("models to ask", "warning", "no language model can be asked now, only baselines", remedy)
    keys = {found[1]: len(names) for problem, names in lacking.items() if (found := _UNSET.fullmatch(problem))}
    if keys:
        named = ", ".join(f"{key} ({counted(number, 'model')})" for key, number in keys.items())
        yield Diagnosis("keys", "ok", f"not set, needed only for their models: {named}; `dtef models` names them")
    for problem, names in lacking.items():
        if not _UNSET.fullmatch(problem):
            yield Diagnosis("models to ask", "ok", f"{', '.join(names)}: {problem}")


def _own_servers(asked: Sequence[ModelSpec]) -> Iterator[Diagnosis]:
    """At which addresses models are asked that have one of their own, and by which transport."""
    found: dict[str, list[str]] = defaultdict(list)
    for spec in asked:
        way = reached(spec, os.environ)
        if way.address:
            found[way.transport].append(f"{spec.name} at {way.address}")
    if found:
        told = "; ".join(f"{_BY[transport]} {', '.join(models)}" for transport, models in sorted(found.items()))
        yield Diagnosis("model servers", "ok", f"asked {told} (not tried)")


def _panel_alone(settings: Settings) -> Diagnosis:
    """The panel where models are not known."""
    if settings.panel is None:
        return _no_panel()
    try:
        known_panel(settings)
    except DtefError as error:
        return Diagnosis("panel", "problem", str(error), _MEND_PANEL)
    found = f"{settings.panel}: its models cannot be looked for while the models file has a problem"
    return Diagnosis("panel", "warning", found, "mend the models file, then give `dtef doctor` again")


def _panel(settings: Settings, models: Models) -> Diagnosis:
    if settings.panel is None:
        return _no_panel()
    try:
        warehouse = _local_warehouse(settings)
        panel = checked_panel(settings, models, warehouse)
    except DtefError as error:
        return Diagnosis("panel", "problem", str(error), _MEND_PANEL)
    asked: Sequence[ModelSpec] = panel.asked(models)
    found = f"{settings.panel}: asks {', '.join(spec.name for spec in asked) or 'no model'}"
    if problems := [f"{spec.name}: {problem}" for spec in asked if (problem := quick_problem(spec, os.environ))]:
        exports = " ".join(f"{key}=KEY" for key in dict.fromkeys(_UNSET.findall("; ".join(problems))))
        remedy = f"export {exports}" if exports else "take these models out of the panel, or install what they need"
        return Diagnosis("panel", "problem", f"{found}; not to be asked now: {'; '.join(problems)}", remedy)
    if unpriced := _unpriced(panel, models, asked):
        remedy = "give input_price and output_price in the models file, or limit with max_calls or max_tokens"
        lacking = f"max_cost_usd cannot be kept without a price of {', '.join(unpriced)}"
        return Diagnosis("panel", "problem", f"{settings.panel}: {lacking}", remedy)
    if (named := [*panel.rounds, *panel.segments]) and warehouse and not warehouse.values("survey_responses", "round"):
        found = f"{found}; no round is ingested yet, so what it names is not there: {', '.join(named)}"
        return Diagnosis("panel", "warning", found, "dtef ingest PATH")
    return Diagnosis("panel", "ok", found)


def _no_panel() -> Diagnosis:
    return Diagnosis(
        "panel", "ok", "none (DTEF_PANEL is not set): `nightly_drift` asks the baselines about every round that has been run"
    )


def _unpriced(panel: Panel, models: Models, asked: Sequence[ModelSpec]) -> list[str]:
    """The models that a night would refuse to ask, since a limit in dollars cannot be kept."""
    of_run = Budget.model_validate(panel.model_dump(include=set(BUDGETS)))
    accounts = Accounts(of_run, {spec.name: spec.budget for spec in asked} | panel.budgets_of(models))
    return accounts.unpriced((spec, price(spec)) for spec in asked if accounts.needs_price(spec.name))


def _local_warehouse(settings: Settings) -> Warehouse | None:
    """An object store is not asked, as it may be long in answering."""
    return None if "://" in settings.warehouse else Warehouse(settings.warehouse)
