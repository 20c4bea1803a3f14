"""The commands of plugin families: `dtef NAME add, check, list, remove, run, board`, built on first use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtef_pipeline.cli.error_reports import reports_errors, shorten_usage_errors
from dtef_pipeline.cli.verbs import Commands, FamilyWords, Verb, build_family_group, run_command

if TYPE_CHECKING:
    from dtef_pipeline.family.record import Family


class MainCommands(Commands):
    """A group with the groups of plugin families after its own commands. Plugins are loaded when used, not when listed."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with shorten_usage_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with shorten_usage_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        from dtef_pipeline.family.plugins import find_plugin_points

        return [*super().list_commands(ctx), *(name for name in find_plugin_points() if name not in self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (command := super().get_command(ctx, cmd_name)) is not None:
            return command
        from dtef_pipeline.family.plugins import find_plugin_points

        point = find_plugin_points().get(cmd_name)
        return PluginGroup(cmd_name, point.dist.name if point.dist else "another package") if point else None


class PluginGroup(click.Group):
    """The group of a plugin family."""

    def __init__(self, name: str, package: str) -> None:
        super().__init__(name, short_help=f"Work with the family {name}, which {package} brings.")
        self._group: click.Group | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._load_group().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._load_group().get_command(ctx, cmd_name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._load_group().format_help_text(ctx, formatter)

    def _load_group(self) -> click.Group:
        if self._group is None:
            self._group = _load(self.name or "")
        return self._group


@reports_errors
def _load(name: str) -> Any:
    from dtef_pipeline.families import FAMILY_BY_NAME

    return plugin_group(FAMILY_BY_NAME[name])


def plugin_group(family: Family) -> click.Group:
    """Return the family's commands."""
    from dtef_pipeline.cli.plugin_records import list_boards
    from dtef_pipeline.text.number_words import format_plural

    part, parts = family.part, format_plural(family.part)
    paths = click.argument("paths", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True)
    return build_family_group(
        FamilyWords(
            name=family.name,
            short=family.help,
            help=family.help,
            part=part,
            pattern="a key, or a pattern such as 'a*'",
            add=Verb(
                f"Add the {parts} of files.",
                f"Read files and store their {parts}. Repeat it after a file has changed.",
                (paths,),
            ),
            check=Verb(
                "Check files and report their faults.",
                "Read files and report what they contain. Stores nothing.",
                (paths,),
            ),
            list=Verb(f"List the {parts} that are known.", f"List the {parts} with their items and snapshots."),
            board=Verb("Show who does best.", "Show models by their mean score over items, or compare them."),
            run=_run(family),
            boards=list_boards(family),
        )
    )


def _run(family: Family) -> click.Command:
    settings = f"{family.settings.__module__}.{family.settings.__qualname__}"
    help = f"Ask models the items of {family.part}s, score the answers, and update the boards."
    verb = Verb("Ask models, and score their answers.", help)
    return run_command(family.name, family.part, settings, verb, roles=("candidate",), starts=("ingest", "ask"))
