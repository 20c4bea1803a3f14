"""What `dtef preference fit` does; the words are in `dtef_pipeline/cli/preference_fit_group.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import pandas as pd

from assets.preference.preference_panel import vote_settings
from dtef_pipeline.cli.chosen_votes import USUAL_REVIEWERS, ChosenVotes, chosen_votes
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.cli.view_table import print_rows
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.preference.published_scores import position
from dtef_pipeline.preference.response_lengths import read_lengths
from dtef_pipeline.preference.stored_votes import CountedVotes, columns_of_votes, text_lengths, why_unweighted
from dtef_pipeline.preference.vote_files import read_votes, repeated_votes
from dtef_pipeline.preference.vote_fit import (
    FittedPreference,
    LengthEffect,
    PreferenceOptions,
    PreferenceScore,
    VoteSettings,
    fit_votes,
)
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.printable import printable
from resources.settings import Settings

_JUDGES_SHOWN = 3
_PREFERENCE_WORDS = {
    "component": "Players that were compared with each other, directly or through others; scores of two components cannot be compared",
    "rank": "Place by beta, 1 is best",
    "tier": "Players that are not told apart from the first of the tier (pair tests, adjusted by Holm's method, p < .05)",
    "beta": "Score in logits, 0 on average; higher is preferred. A difference of 0.69 is preferred 2 to 1",
    "interval": "95 % interval of beta, over the reviewers and prompts that the votes name; a note says where prompts do not count",
    "share": "exp(beta) as a share of the sum over all players, 0-1",
    "n": "Votes on pairs with the player",
}


class _ScoreView(NamedTuple):
    columns: tuple[str, ...] = ("component", "rank", "tier", "model", "beta", "interval", "share", "n")
    kept: tuple[str, ...] = ("model", "beta")
    first_out: tuple[str, ...] = ("share", "n")
    estimate: str = "beta"
    notes: str = "reason"
    who: tuple[str, ...] = ("model",)


def fit(file: Path | None, as_json: bool, responses: Path | None, **of_store: Any) -> None:
    how = vote_settings(Settings.from_environment())
    if file is None:
        if responses is not None:
            raise click.UsageError("--responses goes with FILE alone: the store has the texts itself.")
        _show(*_fit_of_store(_chosen(how, **of_store), how.options), as_json)
        return
    if any(of_store.values()):
        raise click.UsageError("--family, --item, --reviewer and --judge choose votes of the store: give no FILE.")
    if how.control and responses is None:
        raise click.UsageError("`control: length` in the panel file needs --responses FILE: how long the responses are.")
    votes = read_votes(file)
    _show(str(file), fit_votes(votes, how.options, None if responses is None else read_lengths(responses)), {}, as_json)
    if again := repeated_votes(votes):
        who = "of a reviewer on a pair and prompt that the reviewer voted on before"
        click.echo(
            f"warning: {file}: {counted(again, 'vote')} {who}; all are counted, a store would take the first alone", err=True
        )


def _chosen(
    how: VoteSettings,
    family: str | None,
    items: tuple[str, ...],
    reviewers: tuple[str, ...],
    judges: tuple[str, ...],
) -> ChosenVotes:
    """The votes that options and panel file choose: those of judges where some are named."""
    kind = "judge" if judges else USUAL_REVIEWERS
    return ChosenVotes(
        family, items or tuple(how.items), kind, not how.without_leak_risk, reviewers, judges, not how.no_own_judge
    )


def _fit_of_store(chosen: ChosenVotes, options: PreferenceOptions) -> tuple[str, FittedPreference, dict[str, Any]]:
    """What the store is called, the fit of the votes that are meant, and what there is to say of judges."""
    where, counts = chosen_votes(chosen)
    votes = counts.votes
    if options.weight and (why := why_unweighted(votes)):
        raise ConfigError(
            f"weight: confidence, in the panel file: {why}; leave it out, or choose votes that have one by --reviewer, --family or --item"
        )
    found = fit_votes(columns_of_votes(where, votes), options, text_lengths(votes) if votes else None)
    return where, found, _of_judges(counts) if chosen.reviewer_kind == "judge" else {}


def _of_judges(counts: CountedVotes) -> dict[str, Any]:
    judges = sorted({vote.reviewer_id for vote in counts.votes})
    own = {"self_judged": counts.self_judged, "self_judged_left_out": counts.self_judged_left_out}
    return {"judges": judges, **own, **position(counts.votes)}


def _show(where: str, found: FittedPreference, judged: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found.document() | judged, ensure_ascii=False, indent=1, allow_nan=False))
        return
    if not found.scores:
        say(f"{where} holds no votes")
        return
    frame = pd.DataFrame([asdict(score) for score in found.scores], columns=list(PreferenceScore.__slots__))
    frame["model"] = frame["model"].map(printable)
    frame["reason"] = frame["reason"].map(printable)
    frame[["rank", "tier"]] = frame[["rank", "tier"]].astype("Int64")
    if len(found.components) == 1:
        frame = frame.drop(columns="component")
    print_rows(_ScoreView(), frame, "table", [*_lines(found), *_lines_of_judges(judged)], _PREFERENCE_WORDS)


def _lines(found: FittedPreference) -> Iterator[str]:
    who = "nobody says who voted" if found.reviewers is None else counted(found.reviewers, "reviewer")
    left_out = found.votes - found.counted
    yield f"{counted(found.counted, 'vote')}, {who}" + (f"; {counted(left_out, 'tie')} left out" if left_out else "")
    if found.note:
        yield found.note
    if found.options.l2:
        yield f"prior l2={found.options.l2:g}: scores are pulled towards 0"
    if found.options.weight:
        yield "votes are weighted by confidence"
    if found.nu is not None:
        chance = found.nu / (2 + found.nu)
        yield f"nu {found.nu:.3f}{_ends(found.nu_low, found.nu_high)}: two equal players tie {chance:.0%} of the time"
    if found.length is not None:
        yield from _of_length(found.length)


def _lines_of_judges(judged: dict[str, Any]) -> Iterator[str]:
    if not judged:
        return
    yield f"judged by {and_more([printable(one) for one in judged['judges']], _JUDGES_SHOWN)}"
    if judged["flip_rate"] is not None:
        yield f"flip rate {judged['flip_rate']:.3f}: verdicts that did not survive the swap of the texts, and became ties"
    if judged["self_judged"]:
        votes = counted(judged["self_judged"], "vote")
        yield f"{votes} self-judged: on a response of the judge's own maker; `no_own_judge: true` in the panel file leaves them out"
    if judged["self_judged_left_out"]:
        yield f"{counted(judged['self_judged_left_out'], 'self-judged vote')} left out"


def _of_length(length: LengthEffect) -> Iterator[str]:
    if length.coefficient is not None:
        told = f"{length.coefficient:+.3f}{_ends(length.low, length.high)}"
        yield f"length: a response twice as long as the other has {told} logits; the scores are those of equally long responses"
    longer = length.longer
    if longer.share is None:
        yield f"longer response: {longer.reason}"
        return
    ends = _ends(longer.low, longer.high) or f" ({longer.reason})"
    yield f"the longer response is preferred in {longer.share:.3f}{ends} of {counted(longer.votes, 'vote')} that are no ties"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
