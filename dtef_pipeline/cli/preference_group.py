"""The commands below `dtef preference`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import click

from dtef_pipeline.cli.preference_board_group import board
from dtef_pipeline.cli.preference_fit_group import fit
from dtef_pipeline.cli.preference_judge_group import judge
from dtef_pipeline.cli.preference_votes_group import VOTE_COMMANDS


@click.group(short_help="Pair responses, take votes, and rank by them.")
def preference() -> None:
    """Work with votes: which of two responses a reviewer prefers.

    \b
        dtef preference pairs             make pairs of stored responses
        dtef preference next              show a pair without who wrote what, and take the vote
        dtef preference next --out DIR    the same as a page for reviewers without a server
        dtef preference judge             let a model vote, in both orders of the texts
        dtef preference votes             list the votes, follow one back, let one count no more
        dtef preference export FILE       write pairs and votes, to keep or to move them
        dtef preference import FILE       add them, and those of other tools
        dtef preference fit [FILE]        scores of players from the stored votes, or from a file of votes
        dtef rollup --family preference   make the board of all votes
        dtef preference board             show it, with --metric beside automated metrics

    Pairs and votes are kept in the response store.
    """


for command in VOTE_COMMANDS:
    preference.add_command(command)
for command in (judge, fit, board):
    preference.add_command(command)
