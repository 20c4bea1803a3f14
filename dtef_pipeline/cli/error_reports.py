"""Reporting of errors: a message and an exit code."""

from __future__ import annotations

import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import IO, Any

import click

from dtef_pipeline.errors import ConfigError, Interrupted

UNEXPECTED = 70
"""Exit code of an unexpected error."""
ACCOUNTS = "dtef-errors.log"
"""The file in DAGSTER_HOME with the traceback of every unexpected error."""

_PLAIN_ERRORS = {
    r"is not a valid integer(?: range)?": "is not a whole number",
    r"is not a valid float(?: range)?": "is not a number",
    r"does not match the formats? .*": "is not a date such as 2026-03-01 or 2026-03-01T12:30",
}
"""Click's wording of a wrong value, and ours."""


class UsageProblem(click.ClickException):
    """An error of click in the arguments, reported in one line like every other error."""

    exit_code = 2

    def __init__(self, error: click.UsageError) -> None:
        text = " ".join(error.format_message().split()).rstrip(".")
        if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter) and error.param is not None:
            text = f"{_name_parameter(error.param)}: {error.message.rstrip('.')}"
            for pattern, plain in _PLAIN_ERRORS.items():
                text = re.sub(pattern, plain, text)
        text = text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"  # VOTE stays as it is
        path = error.ctx.command_path if error.ctx else "dtef"
        super().__init__(f"error: {text}{'' if text.endswith('?') else '.'} See `{path} --help`")

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


@contextmanager
def shorten_usage_errors() -> Iterator[None]:
    """Raise UsageProblem for a UsageError of click, except for help that click shows instead of an error."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise UsageProblem(error) from error


def _name_parameter(parameter: click.Parameter) -> str:
    """Return `--by` for an option and PATH for an argument."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.name or "").upper().strip("[].")


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Report errors as one line and an exit code, without traceback: 2 if a user can fix them, 130 after an interrupt, 70 otherwise."""

    @wraps(command)
    def run_reporting(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Interrupted as error:
            click.echo(f"\n{error}", err=True)
            sys.exit(130)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            sys.exit(130)
        except click.UsageError as error:
            error.ctx = error.ctx or click.get_current_context(silent=True)
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # handled by click, as is a closed output pipe
        except Exception as error:
            sys.exit(_print_error(error))

    return run_reporting


def _print_error(error: Exception) -> int:
    """Print an error in one line, and return its exit code."""
    # Not imported at the top, to keep `dtef --help` fast.
    from dtef_pipeline.cli.terminal import say
    from resources.failures import add_remedy, describe_error, format_one_line, links
    from resources.settings import Settings

    chain = links(error)
    try:
        settings = Settings.read_environment()
    except ConfigError as fault:  # which may be the error itself
        say(f"error: {fault}", err=True)
        return 2
    if settings.traceback:
        click.echo("".join(traceback.format_exception(error)), err=True)
    if (message := describe_error(chain)) is not None:
        say(f"error: {add_remedy(message)}", err=True)
        return 2
    from dtef_pipeline.games.packs import find_adapter_at_fault

    whose = find_adapter_at_fault(error)
    says = f"{whose} fails" if whose else "this is a bug of dtef-pipeline"
    say(
        f"error: {says}: {format_one_line(chain)}; stored data is kept; "
        f"the traceback, to send with a bug report, is in {_write_traceback(error)}",
        err=True,
    )
    return 2 if whose else UNEXPECTED


def _write_traceback(error: Exception) -> str:
    """Append the traceback to the error log, and return the path."""
    from resources.settings import Settings

    traceback_text = "".join(traceback.format_exception(error))
    text = f"{datetime.now(UTC).isoformat(timespec='seconds')} dtef {' '.join(sys.argv[1:2])}\n{traceback_text}\n"
    for folder in (Settings.read_environment().dagster_home, Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / ACCOUNTS).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return str(folder / ACCOUNTS)
    return "no file, because none could be written: repeat the command with DTEF_TRACEBACK=1"
