"""What a user sees of an error: a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dtef_pipeline.errors import DtefError, Interrupted


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors that a user can mend are a message and exit code 2, not a traceback; an interrupted command ends with 130."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Interrupted as error:
            click.echo(f"\n{error}", err=True)
            sys.exit(130)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            sys.exit(130)
        except DtefError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(f"error: cannot use {error.filename}: {error.strerror}", err=True)
            sys.exit(2)
        except Exception as error:
            # Not imported here: it takes a while, and most commands do without.
            if not type(error).__module__.startswith(("duckdb", "_duckdb")):
                raise
            click.echo(f"error: the tables cannot be read: {error}", err=True)
            sys.exit(2)

    return wrapped
