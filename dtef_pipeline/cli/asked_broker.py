"""The broker of several machines (`DTEF_BROKER`, the queue of their runs) as `dtef doctor` looks at it. Its password is not shown."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.text.extras import how_to_install
from resources.broker import EXAMPLE, VARIABLE, fault, is_redis, launcher_of, shown, without_password
from resources.settings import Settings

BROKER_PING_S = 3.0
"""For the connection, and for the answer."""
_BROKER = "broker"
_CELERY_SETTINGS = "deploy/celery/dagster.yaml"


def check_broker(settings: Settings) -> Diagnosis:
    """Whether the broker answers and takes the password, and whether the settings of Dagster send runs there."""
    home, launcher = settings.dagster_home, launcher_of(settings.dagster_home)
    if launcher is None or not launcher.is_celery:
        if settings.broker is None:
            return Diagnosis(_BROKER, "ok", f"none ({VARIABLE} is not set): runs are not shared with workers on other machines")
        asked = _asked(settings.broker, VARIABLE)
        has_file = (home / "dagster.yaml").is_file()
        # Of a file that cannot be read another check tells.
        return _unused(asked, home, has_file) if asked.state == "ok" and (launcher or not has_file) else asked
    if launcher.address is not None:
        return _asked(launcher.address, f"the broker in {home / 'dagster.yaml'}")
    variable = launcher.variable
    if variable is None:
        found = f"{home / 'dagster.yaml'} has the run launcher of Celery and names no broker: no run can be started"
        return Diagnosis(_BROKER, "problem", found, f"give it the lines `broker` and `backend` of {_CELERY_SETTINGS}")
    if url := settings.broker if variable == VARIABLE else os.environ.get(variable, "").strip():
        return _asked(url, variable)
    found = f"{variable} is not set, and {home / 'dagster.yaml'} names it: no run can be started"
    return Diagnosis(_BROKER, "problem", found, f"give the same as on the other machines: export {variable}={EXAMPLE}")


def _unused(asked: Diagnosis, home: Path, has_file: bool) -> Diagnosis:
    """The broker is in order, and Dagster knows nothing of it."""
    file = home / "dagster.yaml"
    why = f"{file} has not the run launcher of Celery" if has_file else f"there is no {file} with the run launcher of Celery"
    remedy = f"in a checkout of the project: cp {_CELERY_SETTINGS} {shlex.quote(str(file))}; or, where one machine is enough: unset {VARIABLE}"
    return Diagnosis(_BROKER, "warning", f"{asked.found}; no run goes to a worker, as {why}", remedy)


def _asked(url: str, source: str) -> Diagnosis:
    """What the server of an address says. `source`: where the address is written."""
    if wrong := fault(url, source):
        return Diagnosis(_BROKER, "problem", *wrong)
    where = str(shown(url))
    if not is_redis(url):
        return Diagnosis(_BROKER, "ok", f"{where}: not looked at, as it is no plain Redis")
    try:
        return _pinged(url, where, source)
    except ImportError as error:
        found = f"{where} cannot be used: the package {str(error.name).partition('.')[0]} is not installed"
        remedy = f"{how_to_install('celery')}; or, on one machine: unset {VARIABLE}"
        return Diagnosis(_BROKER, "problem", found, remedy)


def _pinged(url: str, where: str, source: str) -> Diagnosis:
    from redis.exceptions import AuthenticationError, RedisError, ResponseError

    try:
        _ping(url)
    except AuthenticationError as error:
        return _refused(url, where, source, without_password(str(error), url))
    except ResponseError as error:
        remedy = (
            f"if it is the number after the host: take a smaller one in {source}, such as /0 (`databases` in redis.conf says how many "
            "there are); if it is a right: give it to the user (ACL SETUSER)"
        )
        return Diagnosis(_BROKER, "problem", f"{where}: it answers, and refuses: {without_password(str(error), url)}", remedy)
    except (RedisError, OSError) as error:
        found = f"{where} does not answer: {without_password(str(error), url)}; no run is taken by a worker until it does"
        remedy = (
            f"start it, on its machine with `systemctl start redis-server`; or mend {source}; "
            "or let this machine reach it (`bind` in redis.conf, the firewall)"
        )
        return Diagnosis(_BROKER, "problem", found, remedy)
    except (ValueError, TypeError) as error:  # of Celery, which wants more of an address than Redis does
        found = f"{where}: Celery does not take this address: {without_password(str(error), url)}"
        return Diagnosis(_BROKER, "problem", found, f"mend {source}, such as {EXAMPLE}")
    return Diagnosis(_BROKER, "ok", f"{where}: it answers")


def _refused(url: str, where: str, source: str, said: str) -> Diagnosis:
    coded = "with %40 for @ and %2F for /"
    if urlsplit(url).username:
        remedy = (
            f"write a user name that Redis has (ACL LIST) and its password into {source}, {coded}; or, with the password that redis.conf "
            "has (requirepass), leave the user name out: redis://:PASSWORD@..."
        )
        return Diagnosis(_BROKER, "problem", f"{where} refuses the user name or the password: {said}", remedy)
    remedy = f"write the password that redis.conf has (requirepass) into {source}, {coded}"
    return Diagnosis(_BROKER, "problem", f"{where} refuses the password: {said}", remedy)


def _ping(url: str) -> None:
    """Connect as workers do, once. Raises ValueError, OSError and the errors of redis."""
    from celery import Celery
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    with Celery("doctor", backend=url, set_as_current=False) as app:
        app.conf.update(redis_socket_timeout=BROKER_PING_S, redis_socket_connect_timeout=BROKER_PING_S)
        with app.backend.client as client:
            client.set_retry(Retry(NoBackoff(), 0))
            client.ping()
