"""The Celery application of a worker (`celery --app assets.celery_worker worker`), with the settings of the run launcher in `dagster.yaml`."""

from dagster_celery.tasks import create_execute_job_task

import assets.definitions  # noqa: F401 - what every run needs, and a fork of this process has: five seconds of a core
import resources.gateway.direct_client  # noqa: F401 - a second more
from assets.celery_runs import WatchedCeleryRunLauncher
from assets.stage.dagster_internals import named_run_launcher
from dtef_pipeline.errors import ConfigError
from resources.settings import Settings

__all__ = ["app"]


def _launcher() -> WatchedCeleryRunLauncher:
    home = Settings.from_environment().dagster_home
    launcher = named_run_launcher(home)
    if not isinstance(launcher, WatchedCeleryRunLauncher):
        named = f"{type(launcher).__module__}.{type(launcher).__name__}"
        raise ConfigError(
            f"{home / 'dagster.yaml'} has the run launcher {named}; a worker needs that of deploy/celery/dagster.yaml"
        )
    return launcher


app = _launcher().celery
create_execute_job_task(app)
