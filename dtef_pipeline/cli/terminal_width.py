"""How wide the terminal is that a command prints to."""

import shutil
import sys
from collections.abc import Sequence

import click

from dtef_pipeline.cli.options import WIDE_META
from dtef_pipeline.report.column_lines import in_width
from dtef_pipeline.report.fitting import HOW, MOST_COLUMNS, Fit


def terminal_fit(kept: Sequence[str] = (), first_out: Sequence[str] = (), how: str = "") -> Fit:
    """What a table has to fit into: the terminal where there is one, and eight columns unless `--wide` is given. The rest as in `Fit`."""
    context = click.get_current_context(silent=True)
    is_wide = context is not None and context.meta.get(WIDE_META, False)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_wide else None
    return Fit(width, kept, first_out, how or HOW, None if is_wide else MOST_COLUMNS)


def say(text: str, *, err: bool = False) -> None:
    """Print sentences, on standard error with `err`. On a terminal a wider line goes on in the next, indented as it is."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    click.echo("\n".join(in_width(line, width, len(line) - len(line.lstrip(" "))) for line in text.split("\n")), err=err)
