"""`dtef doctor`: checks that change nothing and call no model. Each finding is shown as soon as it is known."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import metadata
from pathlib import Path
from typing import Literal, NamedTuple

import click
from packaging.specifiers import SpecifierSet

from dtef_pipeline.documents import find_existing_parent
from dtef_pipeline.errors import DtefError, StoreError
from dtef_pipeline.text.number_words import format_count
from resources.failures import format_one_line, is_damaged, links
from resources.settings import Settings, find_shipped

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """The result of one check. `warning`: something is unusual, but most commands work. `problem`: some command will fail."""

    state: State
    message: str
    remedy: str = ""
    """What to do; empty if all is well."""


def diagnose_absent(path: Path, variable: str, maker: str = "the first command that needs it") -> Finding:
    """Check whether a file or folder that does not exist yet can be created."""
    parent = find_existing_parent(path.absolute())
    problem = f"{path} cannot be made: "
    if not parent.is_dir():
        problem += f"{parent} is a file, where a folder is needed"
    elif not shutil.disk_usage(parent).total:  # /proc claims to be writable but is not
        problem += f"{parent} cannot hold files of users"
    elif not os.access(parent, os.W_OK | os.X_OK):
        problem += f"{parent} is not writable"
    else:
        return Finding("ok", f"{path} does not exist yet; {maker} creates it")
    return Finding("problem", problem, suggest_other_place(variable))


def diagnose_writable(path: Path, message: str, variable: str, below: Iterable[Path] = ()) -> Finding:
    """Check whether an existing file or folder, and the paths `below` it, can be written. `message`: the finding if so."""
    places = [path, *below] if path.is_dir() else [path, path.parent]
    obstacle = next((place for place in places if not os.access(place, os.W_OK)), None)
    if obstacle is None:
        return Finding("ok", message)
    remedy = f"give this user write access (if it is yours: chmod u+w {shlex.quote(str(obstacle))}); or {suggest_other_place(variable)}"
    return Finding("problem", f"{obstacle} is not writable", remedy)


def suggest_other_place(variable: str) -> str:
    """Return how to choose another place, and the default if the variable is set."""
    usual = f"use the default: unset {variable}; or " if os.environ.get(variable) else ""
    return f"{usual}choose another place: export {variable}=PATH"


_PACKAGE = "dtef-pipeline"
_SERVER_S = 5.0
"""Seconds to wait for a response server. Runs wait longer for a server that restarts."""
_UNSET = re.compile(r"environment variable (\S+) is not set")
_START_DAEMON = "start it, on a server with `systemctl restart dtef-daemon`, elsewhere with: dtef ui"
_MEND_CODE = "see `journalctl -u dtef-code`, or the terminal of `dtef ui`; correct the reported error, and start it again"
_MEND_PANEL = "correct the file (docs/how-to/nightly.md lists its keys), or run without it: unset DTEF_PANEL"


def check_python(settings: Settings) -> Finding:
    """Check the Python version."""
    version, bounds = platform.python_version(), metadata(_PACKAGE)["Requires-Python"]
    if SpecifierSet(bounds).contains(version, prereleases=True):
        return Finding("ok", version)
    return Finding("problem", f"{version}, where {bounds} is needed", "install a newer Python and set up again")


def check_responses(settings: Settings) -> Finding:
    """Check the response store: a readable and writable file, or a server that answers."""
    from resources.responses.database import ResponseDatabase
    from resources.responses.engines import parse_database_url

    url = parse_database_url(settings.responses_url)
    address, path = url.render_as_string(hide_password=True), Path(str(url.database))
    is_file = url.get_backend_name() == "sqlite"
    if is_file and not path.exists():
        return diagnose_absent(path, "DTEF_RESPONSES")
    if is_file and path.is_dir():
        return Finding("problem", f"{path} is a folder, where a file is needed", suggest_other_place("DTEF_RESPONSES"))
    try:
        database = ResponseDatabase(settings.responses_url, prepare=False, patience_s=_SERVER_S)
        try:
            version = database.schema_version()
        finally:
            database.close()
    except StoreError as error:
        remedy = f"correct the reported error, start the server, or {suggest_other_place('DTEF_RESPONSES')}"
        if is_file and is_damaged(str(error)):
            file = shlex.quote(str(path))
            remedy = f"replace it with a backup, or start a new store, for which all requests are sent again: mv {file} {file}.broken"
        return Finding("problem", str(error), remedy)
    message = f"{address}: {f'schema version {version}' if version else 'no responses yet'}"
    return diagnose_writable(path, message, "DTEF_RESPONSES") if is_file else Finding("ok", message)


def check_warehouse(settings: Settings) -> Finding:
    """Check the folder or bucket of the tables."""
    root = settings.warehouse
    if "://" in root:
        return _check_bucket(root)
    folder = Path(root).absolute()
    if not folder.exists():
        return diagnose_absent(folder, "DTEF_WAREHOUSE", "`dtef add PATH`")
    if not folder.is_dir():
        return Finding("problem", f"{folder} is not a folder", suggest_other_place("DTEF_WAREHOUSE"))
    tables = [entry for entry in folder.iterdir() if entry.is_dir()]
    return diagnose_writable(folder, f"{folder}: {format_count(len(tables), 'table')}", "DTEF_WAREHOUSE", tables)


def _check_bucket(root: str) -> Finding:
    import pyarrow.fs as pafs

    from resources.file_systems import open_root, strip_secrets

    address = strip_secrets(root)
    try:
        fs, path = open_root(root)
        fs.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    except (DtefError, OSError) as error:
        remedy = (
            "correct the address (docs/explanation/scale.md), AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
            "or name a folder: export DTEF_WAREHOUSE=PATH"
        )
        return Finding("problem", f"{address} cannot be read: {error}", remedy)
    return Finding("ok", f"{address}: it answers")


def check_models(settings: Settings) -> Finding:
    """Check the models file, and which models have their keys. No key is shown."""
    from dtef_pipeline.asking.models import LOCAL_EMBEDDER
    from dtef_pipeline.survey.baselines.names import BASELINES
    from resources.gateway.model_checks import find_quick_problem
    from resources.model_catalog import load_known_models

    try:
        models = load_known_models(settings, BASELINES)
    except DtefError as error:
        return Finding("problem", str(error), "correct the file, or go on without: unset DTEF_MODELS")
    specs = [spec for spec in models.specs.values() if not spec.is_computed and spec.model != LOCAL_EMBEDDER]
    problems = {spec.name: find_quick_problem(spec, os.environ) for spec in specs}
    able = [name for name, problem in problems.items() if problem is None]
    keys = dict.fromkeys(match[1] for problem in problems.values() if problem and (match := _UNSET.fullmatch(problem)))
    lacking = f"; missing keys: {', '.join(keys)}" if keys else ""
    if able:
        message = f"{len(able)} of {len(problems)} are usable: {', '.join(able)}{lacking} (`dtef models` lists all)"
        return Finding("ok", message)
    remedy = (
        f"set the key of a provider, or name a server of yours in DTEF_MODELS: export {next(iter(keys), 'OPENAI_API_KEY')}=KEY"
    )
    return Finding("warning", f"no language model is usable, only baselines{lacking}", remedy)


def check_panel(settings: Settings) -> Finding:
    """Check that all sections of the panel can be read, that its models are known and have keys, and that its rounds exist."""
    from assets.engine.settings_config import load_family_panel
    from assets.preference.score_assets import vote_settings
    from assets.survey.nightly import load_checked_panel
    from dtef_pipeline.cli.options import USUAL_FAMILY
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.survey.baselines.names import BASELINES
    from dtef_pipeline.survey.settings import resolve_panel
    from resources.gateway.model_checks import find_quick_problem
    from resources.model_catalog import load_known_models
    from resources.warehouse import Warehouse

    if settings.panel is None:
        return Finding("ok", "none (DTEF_PANEL is not set): `survey_nightly` runs the baselines only")
    try:
        models = load_known_models(settings, BASELINES)
        warehouse = None if "://" in settings.warehouse else Warehouse(settings.warehouse)
        specs = resolve_panel(load_checked_panel(settings, models, warehouse), models)
        vote_settings(settings)
        for family in FAMILIES:
            if family.name != USUAL_FAMILY:
                load_family_panel(settings, family.name, family.settings)
    except DtefError as error:
        return Finding("problem", str(error), _MEND_PANEL)
    unable = [f"{spec.name}: {problem}" for spec in specs if (problem := find_quick_problem(spec, os.environ))]
    if unable:
        keys = " ".join(f"{key}=KEY" for key in dict.fromkeys(_UNSET.findall("; ".join(unable))))
        remedy = f"export {keys}" if keys else _MEND_PANEL
        return Finding("problem", f"{settings.panel}: {'; '.join(unable)}", remedy)
    return Finding("ok", f"{settings.panel}: asks {', '.join(spec.name for spec in specs) or 'no model'}")


def check_sandbox(settings: Settings) -> Finding:
    """Check how programs written by models are isolated."""
    from resources.sandbox.run import choose_level

    choice = choose_level(settings.sandbox)
    if choice.level is not None:
        return Finding("ok", choice.words)
    best = choose_level("auto").level
    remedy = (
        f"the level without DTEF_SANDBOX is {best}: unset DTEF_SANDBOX"
        if best is not None
        else "install bubblewrap, or see docs/explanation/sandbox.md"
    )
    return Finding("warning", choice.words, remedy)


def check_home(settings: Settings) -> Finding:
    """Check DAGSTER_HOME and its dagster.yaml."""
    from assets.stage.dagster_internals import read_storage_settings
    from dtef_pipeline.cli.stage_runs import describe_start_problem
    from resources.failures import describe_start_failure

    home = settings.dagster_home
    if settings.home_problem:
        text, _, remedy = settings.home_problem.partition(": ")
        return Finding("problem", text, remedy)
    file = home / "dagster.yaml"
    if not file.is_file():
        text = f"{home}: the first command that needs it makes its dagster.yaml"
        return diagnose_writable(home, text, "DAGSTER_HOME") if home.is_dir() else diagnose_absent(home, "DAGSTER_HOME")
    template = f"cp {shlex.quote(str(find_shipped('dagster.yaml')))} {shlex.quote(str(file))}"
    try:
        # Its settings may name the variable.
        os.environ["DAGSTER_HOME"] = str(home)
        read_storage_settings(home)
    except Exception as error:  # Dagster raises many types
        text = str(error) if isinstance(error, DtefError) else describe_start_failure(home, error)
        remedy = describe_start_problem(error, f"correct it, or use the template for one machine: {template}")
        return Finding("problem", text, remedy)
    return diagnose_writable(home, str(home), "DAGSTER_HOME")


def check_daemon(settings: Settings) -> Finding:
    """Check whether Dagster's daemon runs and starts queued evaluations."""
    from datetime import UTC, datetime

    from assets.daemon_state import DaemonState, daemon_state
    from assets.stage.dagster_internals import read_storage_settings
    from dtef_pipeline.text.amounts import format_span
    from resources.evaluations.evaluation_store import QUEUE_SENSOR, count_unended_if_present

    now = datetime.now(UTC)
    try:
        waiting = count_unended_if_present(settings.responses_url, _SERVER_S)
    except DtefError:  # reported by the check of the response store
        waiting = 0
    waits = f"; evaluations that wait or run: {waiting:,}" if waiting else ""
    if check_home(settings).state == "problem":
        return Finding("warning", "not checked, because Dagster's home has a problem", "correct that, then give: dtef doctor")
    home = settings.dagster_home
    folder = read_storage_settings(home).get("base_dir") if (home / "dagster.yaml").is_file() else home
    # Opening a missing storage would create it.
    exists = folder is None or (Path(folder) / "history" / "runs.db").is_file()
    state = daemon_state(home, QUEUE_SENSOR) if exists else DaemonState(None, True)
    last = state.last_heartbeat_at
    if state.problem:
        remedy = f"put a backup of {home} in its place, or start the server that its dagster.yaml names"
        return Finding("problem", f"Dagster's storage cannot be read: {state.problem}", remedy)
    if state.is_running(now):
        if fault := state.find_sensor_fault(now, QUEUE_SENSOR):
            return Finding("warning", f"{fault}{waits}", _MEND_CODE)
        if waiting and not state.is_sensor_on:
            message = f"the sensor {QUEUE_SENSOR} is switched off{waits}"
            return Finding("warning", message, "switch it on in the user interface of Dagster, under Automation: dtef ui")
        return Finding("ok", "running")
    if last or waiting:
        message = f"last seen {format_span(now - last)} ago" if last else "not started"
        return Finding("warning", f"{message}{waits}: no schedule or sensor runs", _START_DAEMON)
    return Finding("ok", "not started: only schedules, sensors and the HTTP API need it (`dtef ui` starts it)")


DOCTOR_CHECKS: Mapping[str, Callable[[Settings], Finding]] = {
    "Python": check_python,
    "response store": check_responses,
    "warehouse": check_warehouse,
    "models": check_models,
    "panel": check_panel,
    "sandbox": check_sandbox,
    "Dagster's home": check_home,
    "Dagster's daemon": check_daemon,
}


_WIDEST = 110
_NAME_WIDTH = 18
_BEFORE_A_COMMAND = re.compile(r"(?:^|: |; )(?=(?:dtef|export|unset|mv|cp|aws) )")
_COLOUR_OF = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(output: str) -> int:
    """Print each finding as soon as it is known, or all for other programs. Return 1 if there is a problem."""
    settings, findings = Settings.read_environment(), dict[str, Finding]()
    for name, check in DOCTOR_CHECKS.items():
        findings[name] = _run_check(check, settings)
        if output == "table":
            _show(name, findings[name])
    if output == "table":
        counts = [sum(finding.state == state for finding in findings.values()) for state in ("problem", "warning")]
        words = [format_count(n, noun) for n, noun in zip(counts, ("problem", "warning"), strict=True) if n]
        click.echo(f"\n{' and '.join(words) or 'no problems found'}")
    else:
        import pandas as pd

        from dtef_pipeline.report.terminal import render

        rows = [(name, *finding) for name, finding in findings.items()]
        click.echo(render(pd.DataFrame(rows, columns=["check", *Finding._fields]), output))
    return int(any(finding.state == "problem" for finding in findings.values()))


def _run_check(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except Exception as error:  # a check that fails must not hide the others
        return Finding("problem", format_one_line(links(error)), "correct the reported error, then run `dtef doctor` again")


def _show(name: str, finding: Finding) -> None:
    """Print `ok       Python              3.11.7`. Long lines are wrapped in the third column; commands have their own, unwrapped line."""
    first = f"{finding.state:<8} {name:<{_NAME_WIDTH}} "
    width = max(60, min(_WIDEST, shutil.get_terminal_size().columns)) - len(first)
    words, *commands = _BEFORE_A_COMMAND.split(finding.remedy)
    message = [finding.message, *([f"-> {words}{':' if commands else ''}"] if words else [])]
    lines = [
        line for text in message for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    ] + commands
    state = click.style(f"{finding.state:<8}", fg=_COLOUR_OF[finding.state])
    click.echo(f"{state}{first[8:]}{lines[0] if lines else ''}")
    for line in lines[1:]:
        click.echo(" " * len(first) + line)
