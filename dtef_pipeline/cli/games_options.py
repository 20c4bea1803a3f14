"""Options that several commands below `dtef games` share."""

from __future__ import annotations

import click

unapproved_too = click.option(
    "--unapproved",
    is_flag=True,
    help="Let personas play that are drafts or retired; boards mark them.  [default: approved ones alone play]",
)
