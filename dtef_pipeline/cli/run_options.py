"""Options that commands of several families have alike: whom to ask, how often, under which label, and within which budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dtef_pipeline.cli.options import options
from dtef_pipeline.errors import ConfigError

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def models_to_ask(which: str, callback: Callable[..., Any] | None = None) -> Option:
    """`--model`. `which`: what a model may be besides one that `dtef models` lists, and who is asked without the option."""
    told = f"Model to ask: a model or collection that `dtef models` lists, {which}"
    return click.option("--model", "models", multiple=True, callback=callback, help=told)


def draws_of(item: str) -> Option:
    """`--draws`. `item`: what is asked."""
    told = f"Number of times each {item} is asked."
    return click.option("--draws", type=click.IntRange(min=1), default=1, show_default=True, help=told)


def snapshot_or_base(told: str) -> Option:
    """`--snapshot` of a command that always is about one."""
    return click.option("--snapshot", default="base", show_default=True, help=told)


NEW_LABEL = "Label to store the responses under, such as base, night-2 or 2026-01-31; a new label asks everything afresh"
of_asked_snapshot = snapshot_or_base(f"{NEW_LABEL}.")


def budgets_with_roles(*roles: str) -> Option:
    """`--max-cost-usd` and `--max-calls` of a run in which models have these roles."""
    return options(
        click.option(
            "--max-cost-usd",
            multiple=True,
            metavar="[ROLE=|MODEL=]USD",
            help=f"US dollars that the run may cost at most, or a role in it ({', '.join(roles)}), or a model; may be repeated.",
        ),
        click.option(
            "--max-calls",
            multiple=True,
            metavar="[ROLE=|MODEL=]N",
            help="Calls that the run, or this role or model in it, may make at most; may be repeated.",
        ),
    )


def refuse_estimate_of_judging(first: str) -> None:
    """Raises ConfigError for an estimate of a run that begins with judging: an estimate is of the whole run, less what is stored."""
    if first == "judge":
        raise ConfigError(
            "--estimate with --from judge: allowed with --from ask or --from ingest, which count what is stored as nothing"
        )


def boards_by(family: str) -> Option:
    """`--no-roll-ups` of a run of the family."""
    told = f"Do not update boards now; `dtef rollup --family {family}` or the next run does."
    return click.option("--no-roll-ups", is_flag=True, help=told)


def anchors_asked(number: int, told: str) -> Option:
    """`--snapshot`, `--n` and `--seed` of a command that has anchors judged again. `number`: how many, usually; `told`: what they are."""
    return options(
        snapshot_or_base("Label of the night, such as 2026-01-31; a new label asks afresh."),
        click.option("--n", type=click.IntRange(min=1), default=number, show_default=True, help=told),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the choice of new anchors."
        ),
    )


of_anchors_shown = click.option("--show", is_flag=True, help="Ask nobody; show what the nights so far say of each judge.")
