"""`dtef models`, and model names in Socioscope's spelling."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
import pandas as pd

from dtef_pipeline.cli.terminal import compute_terminal_fit
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.transcripts.retriever import normalise_model_string
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.baselines.names import BASELINES
from resources.gateway.model_checks import resolve_route
from resources.model_catalog import load_known_models
from resources.settings import Settings


def resolve_model_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in this project's spelling: `provider:name` becomes `provider/name`, unless a model or collection has that name.

    Other names are unchanged, for the command to report.
    """
    try:
        models = load_known_models(Settings.read_environment(), COMPUTED_MODELS)
    except ConfigError:
        return tuple(names)
    known_names = {*models.specs, *models.collections, *models.computed}
    return tuple(name if name.partition("@")[0] in known_names else _convert_name(name) for name in names)


def _convert_name(name: str) -> str:
    try:
        return normalise_model_string(name)
    except ConfigError:
        return name


def list_models(output: str) -> None:
    models = load_known_models(Settings.read_environment(), BASELINES)
    rows = []
    for spec in models.specs.values():
        collections = ", ".join(name for name, members in models.collections.items() if spec.name in members)
        transport, address = resolve_route(spec, os.environ)
        row = {"model": spec.name, "variant": spec.variant, "collections": collections, "key": spec.api_key_env or ""}
        rows.append({**row, "transport": transport, "address": address})
    click.echo(render(pd.DataFrame(rows), output, fit=compute_terminal_fit(["model", "key"], ["collections"])))
