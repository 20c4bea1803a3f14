"""The broker of several machines (`DTEF_BROKER`, the queue of their runs) as `dtef doctor` looks at it. Its password is not shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from dtef_pipeline.cli.findings import Diagnosis
from resources.settings import Settings

BROKER_PING_S = 3.0
"""For the connection, and for the answer."""
_BROKER = "broker"
_BROKER_URL = "redis://:PASSWORD@HOST:6379/0"
_REDIS = ("redis", "rediss")
_AFTER_HOST = re.compile(r"/?\d*")


def check_broker(settings: Settings) -> Diagnosis:
    """Whether the broker answers, and takes the password."""
    url = settings.broker
    if url is None:
        return _none(settings.dagster_home)
    if (where := _shown(url)) is None:
        remedy = "mend it; a sign of its password that means something in an address is written as there: %40 for @, %2F for /"
        return Diagnosis(_BROKER, "problem", f"DTEF_BROKER is no address such as {_BROKER_URL}", remedy)
    if urlsplit(url).scheme not in _REDIS:
        return Diagnosis(_BROKER, "ok", f"{where}: not looked at, as it is no Redis")
    try:
        return _pinged(url, where)
    except ImportError as error:
        found = f"{where} cannot be used: the package {str(error.name).partition('.')[0]} is not installed"
        return Diagnosis(
            _BROKER, "problem", found, "pip install 'dtef-pipeline[celery]'; or, on one machine: unset DTEF_BROKER"
        )


def _pinged(url: str, where: str) -> Diagnosis:
    from redis.exceptions import AuthenticationError, RedisError

    try:
        _ping(url)
    except AuthenticationError as error:
        remedy = "write the password that redis.conf has (requirepass) into DTEF_BROKER, with %40 for @ and %2F for /"
        return Diagnosis(_BROKER, "problem", f"{where} refuses the password: {_said(error, url)}", remedy)
    except (RedisError, OSError) as error:
        found = f"{where} does not answer: {_said(error, url)}; no run is taken by a worker until it does"
        remedy = (
            "start it, on its machine with `systemctl start redis-server`; or mend DTEF_BROKER; "
            "or let this machine reach it (`bind` in redis.conf, the firewall)"
        )
        return Diagnosis(_BROKER, "problem", found, remedy)
    except ValueError as error:  # of Celery, which wants more of a rediss:// address than Redis does
        remedy = "mend DTEF_BROKER; with TLS it ends in ?ssl_cert_reqs=required"
        return Diagnosis(_BROKER, "problem", f"{where}: Celery does not take this address: {_said(error, url)}", remedy)
    return Diagnosis(_BROKER, "ok", f"{where}: it answers")


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


def _shown(url: str) -> str | None:
    """The address without name, password and parameters; None: it is none, and then a password may stand anywhere in it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or (parts.scheme in _REDIS and not _AFTER_HOST.fullmatch(parts.path)):
        return None
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path if parts.scheme in _REDIS else ''}"


def _said(error: Exception, url: str) -> str:
    password = urlsplit(url).password or ""
    said = " ".join(str(error).split())
    for secret in filter(None, (password, unquote(password))):
        said = said.replace(secret, "[...]")
    return said.removesuffix(".")


def _none(home: Path) -> Diagnosis:
    """Without DTEF_BROKER: whether the settings of Dagster name it."""
    try:
        settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):  # of that another check tells
        settings = None
    launcher = settings.get("run_launcher") if isinstance(settings, Mapping) else None
    if "DTEF_BROKER" in str(launcher):
        found = f"DTEF_BROKER is not set, and {home / 'dagster.yaml'} names it: no run can be started"
        return Diagnosis(_BROKER, "problem", found, f"give the same as on the other machines: export DTEF_BROKER={_BROKER_URL}")
    return Diagnosis(_BROKER, "ok", "none (DTEF_BROKER is not set): runs are not shared with workers on other machines")
