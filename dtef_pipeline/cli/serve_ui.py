"""`dtef ui`: Dagster's web server and daemon, until they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click

from dtef_pipeline.cli.stage_runs import check_settings, prepare_home
from dtef_pipeline.cli.warehouse_access import open_warehouse
from dtef_pipeline.site.paths import FRONT_PAGE, SITE_FOLDER
from resources.file_systems import strip_secrets
from resources.responses.store import ResponseStore
from resources.settings import Settings, find_shipped

PLACES_IN_THE_UI = {
    "surveys, the six stages": "locations/dtef/asset-groups/survey",
    "surveys, the roll-ups": "locations/dtef/asset-groups/boards",
    "rubrics": "locations/dtef/asset-groups/rubric",
    "questions with expected answers": "locations/dtef/asset-groups/qa",
    "games": "locations/dtef/asset-groups/games",
    "preference, from votes": "locations/dtef/asset-groups/preference",
    "all runs": "runs",
}


def ui(host: str, port: int) -> int:
    settings = Settings.read_environment()
    open_warehouse(new=True)
    check_settings(settings)
    ResponseStore(settings.responses_url).close()
    home = prepare_home()
    workspace = str(find_shipped("workspace.yaml"))
    options = ["-w", workspace, "-h", host, "-p", str(port)]
    command = [sys.executable, "-W", "ignore", "-m", "assets.dev_server", *options]
    address = f"http://{host}:{port}"
    click.echo(f"Dagster on {address} (state: {strip_secrets(settings.warehouse)}); stop with Ctrl-C")
    # The page "Lineage" opens with its groups closed.
    places = {title: f"{address}/{place}" for title, place in PLACES_IN_THE_UI.items()}
    if (report := Path(settings.warehouse).absolute() / SITE_FOLDER / FRONT_PAGE).is_file():
        places["the report"] = report.as_uri()
    for title, place in places.items():
        click.echo(f"  {title + ':':<{max(map(len, places)) + 1}} {place}")
    # The child runs in another folder, so all paths are absolute, and in its own session: Ctrl-C reaches all processes of a terminal at
    # once, but Dagster must stop its own processes.
    environment = {**os.environ, **settings.environment()}
    stopped = False
    process: subprocess.Popen[bytes] | None = None

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        if process is not None:
            # Dagster stops its own processes only at SIGINT.
            process.send_signal(signal.SIGINT)

    # Before the start: a background process ignores SIGINT, and Dagster would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    process = subprocess.Popen(command, env=environment, cwd=home, start_new_session=True)  # noqa: S603 - our own interpreter and arguments
    return 0 if process.wait() == 0 or stopped else 1
