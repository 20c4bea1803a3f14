"""The command `dtef api`: opens the stores, and serves until a stop signal."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from pathlib import Path

import click
import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.plans.plan import load_slow_packages
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import Tokens
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.origins import LOOPBACK_HOSTS
from resources.settings import Settings

_SHUTDOWN_TIMEOUT_S = 3
"""Seconds for open requests to finish after a stop signal."""
_LARGEST_HEADERS = 64_000
"""Bytes."""
_MAX_CONNECTIONS = 500
"""Including event streams; a service has 1,024 open files by default."""
_IN_THE_CLEAR = "other computers can reach this address, and tokens are sent unencrypted: put a proxy with TLS in front (docs/how-to/operate.md)"


def serve(host: str, port: int, *, is_open: bool) -> int:
    """Serve until a stop signal, and return the exit code.

    `is_open`: every client has all rights. Raises ConfigError if the API would be open to other computers or closed to all, if the address
    is unavailable, and for invalid settings; StoreError.
    """
    settings = Settings.read_environment()
    is_near = is_loopback(host)
    if is_open and not is_near:
        raise ConfigError(
            f"--host {host[:80]} does not work with --dev, which requires no token and serves only this computer; use 127.0.0.1 or ::1"
        )
    if not is_open and settings.api_tokens is None:
        raise ConfigError(
            "DTEF_API_TOKENS, the file of tokens, is not set, so no client could use the API; name a file and make a token: "
            "export DTEF_API_TOKENS=$HOME/tokens.yaml; dtef tokens NAME --role admin; to try it on this computer only: dtef api --dev"
        )
    tokens = Tokens(None if is_open else settings.api_tokens)
    listening = _open_socket(host, port)
    with listening:
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}"
        services = Services.open_services(settings, tokens, is_open, host)
        server = uvicorn.Server(_make_config(services))
        if not is_near:
            click.echo(f"warning: {_IN_THE_CLEAR}", err=True)
        # The socket accepts connections already, which wait until the server has started.
        click.echo(_describe_login(address, settings.api_tokens, is_open))
        # Imports the packages of submissions; a daemon thread, so that Ctrl-C does not wait for it.
        threading.Thread(target=load_slow_packages, args=[settings], name="packages of submissions", daemon=True).start()
        try:
            server.run([listening])
        except KeyboardInterrupt:
            return 0
    return 0 if server.started else 1


def is_loopback(host: str) -> bool:
    """Return whether only this computer reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _make_config(services: Services) -> uvicorn.Config:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = make_app(services)
    if services.open_to_all:
        # Prevents DNS rebinding: a foreign page whose name resolves to this computer must be rejected.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK_HOSTS), www_redirect=False)
    # No access log, so that requests are not recorded.
    return uvicorn.Config(
        app,
        # Only h11 limits the size of headers.
        http="h11",
        h11_max_incomplete_event_size=_LARGEST_HEADERS,
        limit_concurrency=_MAX_CONNECTIONS,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
    )


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--host {host[:80]!r} is not an address of this computer: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        message = f"cannot serve at {host}, port {port}: {error.strerror}"
        raise ConfigError(f"{message}; is `dtef api` running already? Or choose another port with --port") from error
    return listener


def _describe_login(address: str, tokens: Path | None, is_open: bool) -> str:
    access = (
        "open to all users of this computer, who may do everything (--dev)"
        if is_open
        else f"log in at {address}/login, or send Authorization: Bearer TOKEN, with a token of {tokens}"
    )
    return f"API on {address}: {access}; stop with Ctrl-C"
