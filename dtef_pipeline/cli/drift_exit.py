"""The exit code of `dtef drift --fail-on`, and what it says nothing about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtef_pipeline.cli.terminal import say
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import place_words, reaches, told_too_early
from dtef_pipeline.text.counted import and_more

NOTHING_COMPARED = 5
"""Exit code of `dtef drift --fail-on` where there is no series, or none could be compared."""
TOO_EARLY = 4
"""Exit code of `dtef drift --fail-on drift` where no series drifted, and one has too few snapshots for anybody to tell."""
SERIES_NAMED = 10
"""Series without a verdict that are named."""


def exit_code(rows: Sequence[Mapping[str, Any]], fail_on: str | None, subject: Subject) -> int:
    """3 when a series has the verdict `fail_on` or a worse one; else, when it is asked for, TOO_EARLY when a drift cannot be told yet of a
    series, and NOTHING_COMPARED when none was compared.

    Says on standard error which series were not compared, and of which it is too early to tell. `watch` can be told from two snapshots on.
    """
    if not fail_on:
        return 0
    if who := _not_compared(rows, subject):
        share = f"{len(who)} of {len(rows)} series, which could not be compared"
        say(f"warning: --fail-on {fail_on} says nothing about {share}: {and_more(who, SERIES_NAMED)}", err=True)
    early = (
        [f"{_series_name(row, subject)} ({words})" for row in rows if (words := told_too_early(row))]
        if fail_on == "drift"
        else []
    )
    if early:
        say(
            f"warning: --fail-on drift cannot tell yet of {len(early)} of {len(rows)} series: {and_more(early, SERIES_NAMED)}",
            err=True,
        )
    is_compared = any(row["verdict"] is not None for row in rows)
    return 3 if reaches(rows, fail_on) else TOO_EARLY if early else 0 if is_compared else NOTHING_COMPARED


def _series_name(row: Mapping[str, Any], subject: Subject) -> str:
    return f"{row['model']}{place_words(row, subject.keys)}{subject.at(row)}"


def _not_compared(rows: Sequence[Mapping[str, Any]], subject: Subject) -> list[str]:
    """The rows without a verdict, by what tells people the series apart; of a series with other prompts that are compared, it says so."""
    named = [(_series_name(row, subject), row["verdict"]) for row in rows]
    compared = {who for who, verdict in named if verdict is not None}
    return [
        f"{who} (other prompts of it are compared)" if who in compared else who for who, verdict in named if verdict is None
    ]
