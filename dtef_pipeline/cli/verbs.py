"""The verbs of every family, built from its record: `dtef FAMILY add, check, list, remove, run, board`. Loads nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import (
    Option,
    as_json,
    choice,
    estimate_options,
    flag,
    format_options,
    make_budget_options,
    make_start_option,
    options,
    several,
    snapshot_option,
    writes_a_table,
)
from dtef_pipeline.cli.settings_command import TakesSettings, split_given
from dtef_pipeline.text.number_words import format_plural


class Commands(click.Group):
    """A group that lists its commands in order of use. The verbs of the group `usual` need no group name."""

    usual: click.Group | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in order of use."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        return self.usual.get_command(ctx, cmd_name) if command is None and self.usual else command


class Verb(NamedTuple):
    """A family's help for a verb, and its own options."""

    short: str
    help: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class FamilyWords:
    """The texts, verbs and commands of a family."""

    name: str
    short: str
    help: str
    part: str
    """The noun for a partition."""
    pattern: str
    """How partitions are named, such as: an id, or a pattern such as 'compass__*'."""
    add: Verb
    check: Verb
    list: Verb
    board: Verb
    run: click.Command
    boards: Sequence[Board] = ()
    """The choices of `board --by`; empty for a single board."""
    model_option: str = "--model"
    """The option that filters a board by model or player."""
    removal_note: str = ""
    """What else stays when partitions are removed, in a sentence."""
    extra_commands: tuple[click.Command, ...] = ()
    """Commands that only this family has."""


_REFRESH = flag("--refresh", help="First recompute boards, costs, drift of models and the report from all scores.")
_FUNCTIONS = {"add": "add_files", "check": "check_files", "list": "list_parts", "remove": "remove_parts", "board": "show_board"}
"""The function of `family_verbs.py` behind each verb."""


_HELP_OF_RUNS = """

    Stored responses are reused, and only missing ones are requested. When a budget is reached, finished work is kept; repeat the command to
    request the rest.

    Exit code: 0 done; 1 a {part} failed, or a file was left out; 2 an option or the set-up is wrong;{exit_codes} 130 interrupted.
    """
_EXIT_CODES = {
    "add": "0 done; 1 something was left out; 2 nothing was changed; 130 interrupted",
    "check": "0 no errors; 1 there is an error; 2 an option is wrong, or nothing can be used",
    "remove": "0 done; 2 a name matches nothing, and nothing was changed",
}


def run_command(
    family: str,
    part: str,
    settings: str,
    verb: Verb,
    roles: Sequence[str],
    starts: Sequence[str] = (),
    callbacks: Mapping[str, Callable[..., Any]] | None = None,
    exit_codes: str = "",
) -> click.Command:
    """Return `dtef FAMILY run`.

    `part`: the noun for a partition; `settings`, `callbacks`: see `TakesSettings`; `roles`: of its models; `starts`: possible first stages;
    `exit_codes`: codes that only this family has, as in ` 4 a model is silent;`.
    """

    def run(is_estimate: bool, output: str, **values: Any) -> None:
        from dtef_pipeline.cli.family_run import family_run, run_or_estimate

        record = family_run(family)
        changes, flags = split_given(values)
        run_or_estimate(record, record.settings(changes), flags, is_estimate=is_estimate, output=output)

    asks = (
        snapshot_option,
        make_budget_options(*roles),
        *([make_start_option(*starts)] if starts else []),
        flag("--no-roll-ups", help=f"Do not update boards now; `dtef {family} board --refresh` or the next run does."),
    )
    function = options(*asks, estimate_options, *verb.options)(reports_errors(run))
    config = {"settings": settings, "callbacks": callbacks}
    help = f"{verb.help.rstrip()}{_HELP_OF_RUNS.format(part=part, exit_codes=exit_codes)}"
    command: click.Command = click.command("run", TakesSettings, short_help=verb.short, help=help, **config)(function)
    return command


def build_family_group(words: FamilyWords) -> click.Group:
    """Return the group of a family's commands."""
    group = Commands(words.name, help=words.help, short_help=words.short)
    verbs = {
        "add": (words.add, as_json),
        "check": (words.check, as_json),
        "list": (words.list, format_options),
        "remove": (_remove(words), as_json),
        "board": (_build_board_verb(words), writes_a_table),
    }
    commands = [_build_command(words, name, verb, output) for name, (verb, output) in verbs.items()]
    for command in (*commands[:-1], words.run, commands[-1], *words.extra_commands):
        group.add_command(command)
    return group


def _build_command(words: FamilyWords, name: str, verb: Verb, output: Option) -> click.Command:
    def call(**values: Any) -> None:
        from dtef_pipeline.cli import family_verbs

        sys.exit(getattr(family_verbs, _FUNCTIONS[name])(words.name, **values))

    epilog = _format_boards(words.name, words.boards) if name == "board" else None
    help = f"{verb.help.rstrip()}\n\n    Exit code: {_EXIT_CODES[name]}." if name in _EXIT_CODES else verb.help
    make = click.command(name, short_help=verb.short, help=help, epilog=epilog)
    command: click.Command = make(options(*verb.options, output)(reports_errors(call)))
    return command


def _remove(words: FamilyWords) -> Verb:
    metavar, parts = words.part.upper(), format_plural(words.part)
    help = f"""Remove {parts}: their partitions and their rows in all tables. Boards and pages change with the next
    `dtef {words.name} board --refresh`, or at once if no scores are left.

    {metavar} is {words.pattern}. Files and stored responses stay: if the {words.part} is added and run again, no response is
    paid for twice. {words.removal_note}
    """
    argument = click.argument("patterns", metavar=f"{metavar}...", nargs=-1, required=True)
    return Verb(f"Remove {parts} and their results.", help, (argument,))


def _build_board_verb(words: FamilyWords) -> Verb:
    names = [board.name for board in words.boards]
    by_option = choice("--by", choices=names, default="overall", help="Board to show, as listed below.")
    subject = several(words.model_option, "models", metavar="NAME|PATTERN", help="Only rows whose name matches")
    return words.board._replace(options=(*([by_option] if words.boards else []), subject, *words.board.options, _REFRESH))


def _format_boards(family: str, boards: Sequence[Board]) -> str:
    columns = f"Columns: dtef explain {family}{'/BOARD, such as ' + family + '/overall' if boards else ''}"
    lines = ["What --by shows:", *(f"  {board.name:<15}  {board.shows}" for board in boards), ""] if boards else []
    return "\n".join(["\b", *lines, columns])
