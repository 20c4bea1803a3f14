"""The commands that serve: Dagster's page, the HTTP API, and the tokens of those who may use it. As in `dtef.py`, heavy packages load inside."""

from __future__ import annotations

import sys

import click

from dtef_pipeline.cli.options import of_format
from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Start Dagster: its web page, schedules and sensors.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Port of the web page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the web page is served at.")
@reports_errors
def ui(port: int, host: str) -> None:
    """Start Dagster on the results of these commands: its web page, and the daemon that runs schedules and sensors."""
    from dtef_pipeline.cli import run

    sys.exit(run.ui(host, port))


@click.command(short_help="Start the HTTP API and its pages.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the API is served at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port of the API; 0: one that is free."
)
@click.option(
    "--dev", is_flag=True, help="Ask nobody for a token: whoever is on this computer may do everything. Loopback only."
)
@reports_errors
def api(host: str, port: int, dev: bool) -> None:
    """Start the HTTP API: evaluations and their progress, personas, scenarios, pairs and votes; and pages for the browser.

    It is closed to all who hold no token of the file that DTEF_API_TOKENS names: make one with `dtef tokens new NAME --role admin`. The API
    stores what is asked for; a sensor of Dagster starts the runs, so `dtef ui` or Dagster's daemon must run beside it.

    Start it once per response store: each process counts the votes of a minute, and remembers which pairs come next, by itself.

    \b
    Exit code: 0 stopped; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import serve_api

    sys.exit(serve_api.serve(host, port, is_open=dev))


@click.group(short_help="Make, list and remove the tokens that the API takes.")
def tokens() -> None:
    """Say who may use the HTTP API. The file that DTEF_API_TOKENS names holds a name, a role and the hash of a token per line.

    \b
        dtef tokens new NAME --role ROLE   make a token and show it, once
        dtef tokens list                   show who holds one
        dtef tokens remove NAME            refuse it from now on

    A reviewer gets pairs and votes on them, under the name of the token. An operator does everything else, except what only an admin may:
    void votes, export votes, and read the log of actions. A running API notices changes of the file by itself.
    """


@tokens.command(short_help="Make a token and show it, once.")
@click.argument("name")
@click.option(
    "--role", required=True, type=click.Choice(["reviewer", "operator", "admin"]), help="What the holder of the token may do."
)
@reports_errors
def new(name: str, role: str) -> None:
    """Make a token for NAME, show it once, and store its hash. Of a reviewer NAME is the id that votes are stored under."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.add(name, role)


@tokens.command("list", short_help="Show who holds a token, and which role.")
@of_format
@reports_errors
def list_tokens(output: str) -> None:
    """Show who holds a token, and which role. No token is shown, since none is stored."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.show(output)


@tokens.command(short_help="Refuse a token from now on.")
@click.argument("name")
@reports_errors
def remove(name: str) -> None:
    """Remove the token of NAME, which is refused from then on. Votes and actions under the name stay."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.remove(name)


SERVING_COMMANDS = (ui, api, tokens)
