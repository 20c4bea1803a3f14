"""What a command will need is looked at before anything is asked or started: settings, the response store, keys, the home of Dagster."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from assets.survey.panel_file import known_panel
from dtef_pipeline.asking.models import Models
from dtef_pipeline.cli.selection import Selection
from dtef_pipeline.documents import read_document, why_no_folder
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import BASELINES
from resources.failures import does_not_start, in_words, links, unset_variables
from resources.gateway.askable import refuse_absent_imported, refuse_early
from resources.gateway.budget import Accounts
from resources.json_posts import Webhook
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings, shipped


def check_settings(settings: Settings) -> Models:
    """The files and addresses that stages and roll-ups read at their end; the known models. Raises ConfigError for a fault in one."""
    check_home_path(settings)
    known_panel(settings)
    models = known_models(settings, BASELINES)
    if settings.webhook and (problem := Webhook(settings.webhook).problem):
        raise ConfigError(problem)
    return models


def check_home_path(settings: Settings) -> None:
    """Raises ConfigError for a home of Dagster that depends on the folder one stands in."""
    if problem := settings.home_problem:
        raise ConfigError(problem)


def check_asking(settings: Settings, chosen: Selection) -> None:
    """The response store, and the keys and prices of models that have never been asked in the snapshot.

    Raises StoreError, GatewayError, and ConfigError for an imported model without responses, before minutes are spent on prompts.
    """
    budgets = {model.name: model.budget for model in chosen.models} | dict(chosen.budgets)
    with ResponseStore(settings.responses_url) as store:
        refuse_absent_imported(chosen.models, chosen.snapshot, store)
        refuse_early(chosen.models, chosen.snapshot, Accounts(chosen.budget, budgets), store, os.environ)


@contextmanager
def dagster_instance() -> Iterator[Any]:
    """The instance of DAGSTER_HOME (made on first use from the shipped template): the one the UI shows."""
    home = prepare_home()
    import dagster as dg

    try:
        opened = dg.DagsterInstance.get()
    except Exception as error:
        if in_words(links(error)):
            raise
        remedy = how_to_start(error, f"the template is {shipped('dagster.yaml')}")
        raise ConfigError(f"{does_not_start(home, error)}; {remedy}") from error
    with opened as instance:
        yield instance


def how_to_start(error: Exception, template: str) -> str:
    """What to do about settings that Dagster does not start with: the words about the `template`, unless variables are all that is missing."""
    if unset := unset_variables(error):  # The template would replace the settings of several machines by those of one.
        return (
            f"set {' and '.join(unset)}, as for the services (`set -a; . /etc/dtef/dtef.env; set +a` where they have that file)"
        )
    return template


def prepare_home() -> Path:
    """The folder of Dagster's state, with its `dagster.yaml`. Raises ConfigError when there can be none."""
    state = Settings.from_environment()
    check_home_path(state)
    home = state.dagster_home
    settings = home / "dagster.yaml"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not settings.exists():
            _copy_whole(shipped("dagster.yaml"), settings)
    except OSError as error:
        hint = "; choose another folder with DAGSTER_HOME" if not home.is_dir() else ""
        raise ConfigError(f"cannot make the home of Dagster {home}: {why_no_folder(home, error)}{hint}") from error
    if earlier := earlier_version(settings):
        click.echo(f"warning: {earlier}; put this in its place: {shipped('dagster.yaml')}", err=True)
    os.environ["DAGSTER_HOME"] = str(home)
    # Materializations are written this many at a time.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "50")
    return home


def earlier_version(settings: Path) -> str | None:
    """What is missing in a `dagster.yaml` of an earlier version, in words; None: nothing. Raises ConfigError when it cannot be read."""
    some_keys = ("storage", "run_launcher", "concurrency")
    if "run_launcher" in read_document(settings, "settings file of Dagster", some_keys).values:
        return None
    return f"{settings} is of an earlier version: killed workers are not noticed"


def _copy_whole(source: Path, target: Path) -> None:
    """Whole or not at all: Dagster would take half a file, or an empty one, for its settings."""
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
