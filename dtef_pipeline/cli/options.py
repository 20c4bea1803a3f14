"""Options shared by several `dtef` commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial, wraps
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import click

from dtef_pipeline.errors import ConfigError

WIDE_META = "dtef.wide"
"""Key in a command's context that records whether `--wide` was given."""


Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def options(*options: Option) -> Option:
    """Combine options into one decorator. The help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def several(*names: str, help: str, metavar: str | None = None, usual: str = "") -> Option:
    """Return an option that may be repeated. `usual`: its default, in words."""
    text = f"{help}; may be repeated.{f'  [default: {usual}]' if usual else ''}"
    return click.option(*names, multiple=True, metavar=metavar, help=text)


def whole_number(*names: str, floor: int, help: str, default: int | None = None) -> Option:
    """Return an option for an integer of at least `floor`."""
    return click.option(*names, type=click.IntRange(min=floor), default=default, show_default=default is not None, help=help)


def choice(*names: str, choices: Sequence[str], help: str, default: str | None = None) -> Option:
    """Return an option with a fixed set of values."""
    return click.option(*names, type=click.Choice(choices), default=default, show_default=default is not None, help=help)


def flag(*names: str, help: str) -> Option:
    """Return a boolean option."""
    return click.option(*names, is_flag=True, help=help)


def existing_path(*names: str, help: str, kind: Literal["path", "file", "folder"] = "path") -> Option:
    """Return an option for an existing file or folder."""
    path = click.Path(exists=True, file_okay=kind != "folder", dir_okay=kind != "file", path_type=Path)
    return click.option(*names, type=path, help=help)


USUAL_FAMILY = "survey"
"""The default of `--family`."""


class LevelName(click.Choice[str]):
    """Level names offered by help and completion. Other values pass; the command validates them for its family."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


def _validate_family(
    context: click.Context, parameter: click.Parameter, family: str | None, *, extras: Sequence[str]
) -> str | None:
    if family is None or context.resilient_parsing:
        return family
    from dtef_pipeline.families import FAMILIES

    names = [*(record.name for record in FAMILIES), *extras]
    if family not in names:
        raise click.BadParameter(f"{family!r} is not one of {', '.join(names)}.", context, parameter)
    return family


def family_option(
    default: str | None = USUAL_FAMILY, help: str = "Family of evaluations to read.", extras: Sequence[str] = ()
) -> Option:
    """Return the option `--family`. Without default it means all families. `extras`: other allowed values."""
    return click.option(
        "--family",
        default=default,
        show_default=default is not None,
        metavar="|".join(["survey", "rubric", "qa", "games", *extras]),
        is_eager=True,
        callback=partial(_validate_family, extras=extras),
        help=help,
    )


def refuse_others(names: Collection[str], where: str, exempt: Collection[str] = ()) -> None:
    """Raise ConfigError if the current command was given an option that is not in `names`.

    `where`: what they are allowed with, such as `--family rubric`; `exempt`: options that are not checked.
    """
    context = click.get_current_context()
    options = {
        option.name or "": option.opts[0]
        for option in context.command.params
        if isinstance(option, click.Option) and option.expose_value and option.name not in exempt
    }
    choices = ", ".join(spelling for name, spelling in options.items() if name in names) or "no other option"
    for name, spelling in options.items():
        if name not in names and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise ConfigError(f"{spelling} does not work with {where}, which allows {choices}")


rounds_option = click.option(
    "--round",
    "rounds",
    type=str.upper,
    metavar="ROUND",
    multiple=True,
    help="Only this round; may be repeated.  [default: all]",
)


metric_option = click.option(
    "--metric",
    default="js",
    show_default=True,
    metavar="js|cosine|emd|emd_normalized|tv|mae|top_hit",
    help="Metric that counts as the score.",
)


targets_option = choice(
    "--targets",
    choices=["clean", "all"],
    default="clean",
    help="Questions that count; clean leaves out a question that defines the segment, such as that of age for an age group.",
)


def _keep_output(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    """Set the parameter `output` of the command: table (for people), json or csv."""
    output = context.params.setdefault("output", "table")
    if is_given and output != "table":
        raise click.UsageError("give --json or --csv, not both.")
    if is_given:
        context.params["output"] = parameter.name


as_json: Option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_keep_output, help="Write JSON, for other programs."
)
format_options = options(
    as_json,
    click.option("--csv", is_flag=True, expose_value=False, callback=_keep_output, help="Write CSV, for other programs."),
)


@contextmanager
def collect_lines(output: str) -> Iterator[None]:
    """With `json`, print a command's output as one object with `lines`; if the command raises an error, print nothing."""
    if output != "json":
        yield
        return
    end = None
    with redirect_stdout(StringIO()) as stream:
        try:
            yield
        except SystemExit as error:
            end = error
    click.echo(json.dumps({"lines": stream.getvalue().splitlines()}, ensure_ascii=False))
    if end is not None:
        raise end


def lines_as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` to a command that prints only sentences (see `collect_lines`)."""

    @wraps(command)
    def call_command(*, output: str, **given: Any) -> Any:
        with collect_lines(output):
            return command(**given)

    return as_json(call_command)


def _keep_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    context.meta[WIDE_META] = is_wide


writes_a_table = options(
    format_options,
    click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=_keep_wide,
        help="Show all columns of a table, not only the most important eight.",
    ),
)


estimate_options = options(
    flag(
        "--estimate",
        "is_estimate",
        help="Only print the calls, tokens and cost of the run, as a table or with --json or --csv. Makes no calls and writes nothing.",
    ),
    writes_a_table,
)


def make_start_option(*stages: str) -> Callable[..., Any]:
    """Return the option `--from` of a run: its first stage, one of `stages`; by default `ask`."""
    meanings = ", ".join(f"{name} {_STAGES_TO_BEGIN_WITH[name]}" for name in stages)
    return choice("--from", "first", choices=stages, default="ask", help=f"Stage to begin with: {meanings}.")


_STAGES_TO_BEGIN_WITH = {
    "ingest": "reads the files again first",
    "ask": "sends the missing requests",
    "judge": "judges and scores stored responses again, without calls to models under test",
}


def snapshot_or_base(help_text: str) -> Option:
    """Return the option `--snapshot` of a command that needs one."""
    return click.option("--snapshot", default="base", show_default=True, help=help_text)


snapshot_option = snapshot_or_base(
    "Snapshot to store the responses in, such as base, rerun-2 or 2026-01-31. A new one requests everything again; one that begins with a date "
    "counts as that date."
)


def make_budget_options(*roles: str) -> Option:
    """Return the options `--max-cost-usd` and `--max-calls` of a run with these model roles."""
    return options(
        several(
            "--max-cost-usd",
            metavar="[ROLE=|MODEL=]USD",
            help=f"Maximum cost in US dollars of the run, of a role in it ({', '.join(roles)}) or of a model",
        ),
        several(
            "--max-calls", metavar="[ROLE=|MODEL=]N", help="Maximum number of calls in the run, of a role in it or of a model"
        ),
    )
