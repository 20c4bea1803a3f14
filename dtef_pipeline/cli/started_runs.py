"""Runs that commands of several families start alike: their roll-ups; and what is said of whom a run asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.unknown_cost import cost_in_words
from resources.gateway.progress import PartsProgress, kept_terminal
from resources.settings import Settings

if TYPE_CHECKING:
    from assets.launch import Launched


def roll_up(instance: Any, names: Sequence[str], config: Mapping[str, Mapping[str, Any]]) -> Launched:
    """These roll-ups, in a run of their own, over everything that is stored. `config`: run configuration by name."""
    from assets.launch import materialize

    progress = PartsProgress("roll-ups", len(names), lambda line: None)

    def told(step: str) -> None:
        if step in names:  # checks are steps too
            progress.begin(step)

    try:
        return materialize(instance, list(names), [], config, on_step=told)
    finally:
        progress.close()


def materialized_assets(instance: Any, names: Sequence[str]) -> list[str]:
    """Those of these assets that were materialized already."""
    import dagster as dg

    return [name for name in names if instance.get_latest_materialization_event(dg.AssetKey(name)) is not None]


def rolled_up(table: str, command: str, roll_ups: Callable[[Any], Launched]) -> int:
    """The exit code of a command that runs the roll-ups of a family: 1 where one failed, or a file was left out.

    `table`: the scores that they are made of; `command`: what makes some.
    """
    warehouse = open_warehouse()
    check_home_path(Settings.from_environment())
    if not warehouse.tables([table]):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: they are made by `{command}`")
    with kept_terminal(), dagster_instance() as instance:
        outcome = roll_ups(instance)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    say_skipped(outcome, warehouse)
    return 1 if outcome.failures or warehouse.skipped else 0


def say_used(used: Mapping[str, Any]) -> None:
    """A line per role that was asked: calls, tokens and dollars."""
    for role, usage in used.items():
        cost = cost_in_words(usage.known_usd, usage.unpriced, usage.most_usd)
        say(f"asked now, as {role}: {counted(usage.calls, 'call')}, {counted(usage.tokens, 'token')}, {cost}")
