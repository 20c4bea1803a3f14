"""`dtef models`: the models that can be asked by name, with how and where each is asked. No key and no password is shown."""

from __future__ import annotations

import os

import click
import pandas as pd

from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.baselines.names import BASELINES
from resources.gateway.askable import reached
from resources.known_models import known_models
from resources.settings import Settings


def list_models(output: str) -> None:
    known = known_models(Settings.from_environment(), BASELINES)
    rows = [
        {
            "model": spec.name,
            "variant": spec.variant,
            "collections": ", ".join(name for name, members in known.collections.items() if spec.name in members),
            "key": spec.api_key_env or "",
            **reached(spec, os.environ)._asdict(),
        }
        for spec in known.specs.values()
    ]
    click.echo(render(pd.DataFrame(rows), output, fit=terminal_fit(["model", "key"], ["collections"])))
