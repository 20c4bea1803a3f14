"""`dtef preference board --now`, and which votes of the store a command is about."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
import pandas as pd

from assets.preference.preference_panel import vote_settings
from dtef_pipeline.asking.models import Models
from dtef_pipeline.boards.family_views import TableView
from dtef_pipeline.cli.terminal import print_rows, say
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.preference.response_lengths import read_lengths
from dtef_pipeline.preference.score_publishing import build_score_rows, describe_selection
from dtef_pipeline.preference.vote_files import count_repeated_votes, read_votes
from dtef_pipeline.preference.vote_fit import PreferenceFit, VoteSettings, fit_votes
from dtef_pipeline.preference.vote_selection import (
    build_vote_columns,
    filter_by_reviewer,
    filter_votes,
    find_unweighted_reason,
    measure_text_lengths,
)
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.text.printable import escape_terminal
from dtef_pipeline.text.quantity_words import format_count, list_first_names
from resources.settings import Settings
from resources.votes.vote_store import VoteStore, read_player_votes


def resolve_judges(patterns: tuple[str, ...], judges: Collection[str]) -> tuple[str, ...]:
    """The patterns, and the ids of those judges that the patterns select as names, collections or selectors of models.

    `judges`: the ids of all that voted. A model with other settings is another judge; with other prompts it is the same judge.
    """
    if not patterns or not judges:
        return patterns
    named = set(_find_judge_ids(patterns, _load_models()))
    return (*patterns, *sorted(judge for judge in judges if _strip_wording(judge) in named))


def _find_judge_ids(patterns: Iterable[str], models: Models) -> Iterator[str]:
    """The ids, without the hash of the prompt, of all models that the patterns name."""
    from dtef_pipeline.preference.pair_verdicts import judge_reviewer_id, pair_judges

    for pattern in patterns:
        for name in {pattern, *(model for model in models.specs if fnmatchcase(model, pattern))}:
            try:
                yield from (_strip_wording(judge_reviewer_id(spec)) for spec in pair_judges((name,), models))
            except ConfigError:
                continue  # It names no model, or one that cannot judge.


def _strip_wording(judge: str) -> str:
    return judge.rpartition("#")[0]


USUAL_REVIEWERS = "person"
_VOTING_JUDGES_NAMED = 5
_ITEMS_NAMED = 3


def read_stored_votes(reviewer_kind: str, family: str | None = None) -> tuple[str, list[PlayersVote]]:
    """What the store is called, and its votes of this kind of reviewer that are not voided."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        return store.name, read_player_votes(store, family=family, reviewer_kind=reviewer_kind)


def _describe_no_votes(where: str, reviewer_kind: str, family: str | None) -> str:
    whose = "people" if reviewer_kind == USUAL_REVIEWERS else "judges"
    on = f" on responses of {family}" if family else ""
    return f"nothing to fit: {where} holds no votes of {whose}{on}; `dtef preference votes` lists those there are"


def _format_items(votes: list[PlayersVote]) -> str:
    ids = sorted({vote.item_id for vote in votes})
    return f"items: {list_first_names(ids, _ITEMS_NAMED)}"


def _describe_voters(votes: list[PlayersVote]) -> str:
    """Who voted. People's ids say nothing to those who do not know them, so they are only counted."""
    ids = sorted({vote.reviewer_id for vote in votes})
    if votes[0].reviewer_kind == "judge":
        return f"{format_count(len(ids), 'judge')} voted: {list_first_names(ids, _VOTING_JUDGES_NAMED)}"
    return f"{format_count(len(ids), 'reviewer')} voted; `dtef preference votes` lists their ids"


def _load_models() -> Models:
    # Loads every family, which votes of people and patterns of ids do not need.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.model_catalog import load_known_models

    return load_known_models(Settings.read_environment(), COMPUTED_MODELS)


_JUDGES_SHOWN = 3
_FACTS_OF_JUDGES = ("self_judged", "self_judged_left_out", "flip_rate", "first_share")
_SCORE_VIEW = TableView(
    (
        *("family", "partition", "reviewer_kind", "judge", "component", "rank", "tier", "player", "beta", "interval", "share"),
        *("n_votes", "n_reviewers"),
    ),
    ("player", "beta", "interval"),
    ("share", "n_reviewers", "n_votes"),
    "beta",
    "reason",
    ("player",),
)
SCORE_INTERVAL = {"interval": "95 % interval of beta, over reviewers and, unless a note says otherwise, prompts"}
"""The column of boards of preference that `preference_scores` does not have."""


def print_scores(frame: pd.DataFrame, output: str, lines: Iterable[str]) -> None:
    """Rows of `preference_scores`, with `lines` on their fits."""
    shown = frame if (frame["component"] != 0).any() else frame.drop(columns="component")
    print_rows(_SCORE_VIEW, shown, output, lines, "preference")


def describe_fit(row: Mapping[Any, Any]) -> Iterator[str]:
    """What a row of `preference_scores` says of its fit as a whole: which votes it is made of, and how where that is not the usual way."""
    facts = {name: value for name, value in row.items() if not pd.isna(value)}
    reviewers = facts.get("reviewers")
    voters = "voters unknown" if reviewers is None else format_count(int(reviewers), "reviewer")
    yield f"{format_count(int(facts['votes']), 'vote')}, {voters}"
    if "longer_share" in facts:
        ends = _format_ends(facts.get("longer_low"), facts.get("longer_high"))
        yield f"the longer text is preferred in {facts['longer_share']:.3f}{ends} of those that are not ties"
    if "flip_rate" in facts:
        yield f"flip rate {facts['flip_rate']:.3f}: verdicts that changed when the texts were swapped, and became ties"
    if "first_share" in facts:
        yield f"{facts['first_share']:.3f} of decisions for the text that was shown first"
    if facts.get("self_judged"):
        yield f"{format_count(int(facts['self_judged']), 'vote')} self-judged: on a response of the judge's own maker"
    if facts.get("self_judged_left_out"):
        yield f"{format_count(int(facts['self_judged_left_out']), 'self-judged vote')} left out"
    if facts.get("leaks_left_out"):
        yield f"{format_count(int(facts['leaks_left_out']), 'vote')} left out for a leak risk"
    if "items" in facts:
        yield f"only items that fit {facts['items']}"
    yield from _describe_model(facts)


def _describe_model(facts: Mapping[Any, Any]) -> Iterator[str]:
    if "prior_l2" in facts:
        yield f"prior l2={facts['prior_l2']:g}: scores are pulled towards 0"
    if "weight" in facts:
        yield "votes are weighted by confidence"
    if "unweighted" in facts:
        yield f"every vote counts 1: {facts['unweighted']}"
    if "length_effect" in facts:
        yield f"a text twice as long has {facts['length_effect']:+.3f} logits; the scores are those of equally long texts"


def _format_ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"


def fit(file: Path | None, output: str, responses: Path | None, **of_store: Any) -> None:
    how = vote_settings(Settings.read_environment())
    if file is None:
        if responses is not None:
            raise click.UsageError("--responses: allowed only with FILE; the store already has the texts.")
        _show(*_fit_of_store(how, **of_store), output)
        return
    if any(of_store.values()):
        raise click.UsageError("--family, --item, --reviewer and --judge choose votes of the store: give no FILE.")
    if how.control and responses is None:
        raise click.UsageError("`control: length` in the panel file needs --responses FILE: how long the responses are.")
    votes = read_votes(file)
    _show(str(file), fit_votes(votes, how, None if responses is None else read_lengths(responses)), {}, output)
    if again := count_repeated_votes(votes):
        who = "of a reviewer on a pair and prompt that the reviewer voted on before"
        click.echo(
            f"warning: {file}: {format_count(again, 'vote')} {who}; all are counted, but a store would keep only the first",
            err=True,
        )


def _fit_of_store(
    how: VoteSettings, family: str | None, items: Sequence[str], reviewers: Sequence[str], judges: tuple[str, ...]
) -> tuple[str, PreferenceFit, dict[str, Any]]:
    """What the store is called, the fit of its votes that are meant and not voided, and what there is to say of judges.

    The votes are those of judges where some are named: they are never mixed with those of people. Raises StoreError where there are no such
    votes at all, and ConfigError where no vote fits.
    """
    kind = "judge" if judges else USUAL_REVIEWERS
    where, votes = read_stored_votes(kind, family)
    if not votes:
        raise StoreError(_describe_no_votes(where, kind, family))
    selection = filter_by_reviewer(votes, reviewers, resolve_judges(judges, {vote.reviewer_id for vote in votes}))
    if not selection:
        flags = " ".join([*(f"--reviewer {reviewer}" for reviewer in reviewers), *(f"--judge {judge}" for judge in judges)])
        raise ConfigError(f"{flags}: got none that voted; {_describe_voters(votes)}")
    if items:
        how = how.model_copy(update={"items": list(items)})
    counts = filter_votes(selection, how, _load_models().own_servers if judges else ())
    if not counts.votes:
        raise ConfigError(
            f"nothing to fit: none of {format_count(len(selection), 'vote')} is on such an item or pair; {_format_items(selection)}"
        )
    if how.weight and (why := find_unweighted_reason(counts.votes)):
        raise ConfigError(
            f"weight: confidence, in the panel file: {why}; leave it out, or choose votes that have one by --reviewer, --family or --item"
        )
    result = fit_votes(build_vote_columns(where, counts.votes), how, measure_text_lengths(counts.votes))
    judge_ids = {"judges": sorted({vote.reviewer_id for vote in counts.votes})} if judges else {}
    return where, result, judge_ids | describe_selection(counts, how)


def _show(where: str, result: PreferenceFit, facts: dict[str, Any], output: str) -> None:
    """`facts`: of votes of the store, what `describe_selection` says of them, and their judges."""
    judges = facts.pop("judges", [])
    if output == "json":
        judge_facts = {"judges": judges} | {name: facts[name] for name in _FACTS_OF_JUDGES} if judges else {}
        click.echo(json.dumps(result.document() | judge_facts, ensure_ascii=False, indent=1, allow_nan=False))
        return
    if not result.scores:
        say(f"{where} holds no votes")
        return
    rows = build_score_rows(result, facts)
    frame = pd.DataFrame(rows).astype({"rank": "Int64", "tier": "Int64"})
    for name in ("player", "reason"):
        frame[name] = frame[name].map(escape_terminal, na_action="ignore")
    print_scores(frame, output, [*describe_fit(rows[0]), *_describe_further(result, judges)])


def _describe_further(result: PreferenceFit, judges: Sequence[str]) -> Iterator[str]:
    """What the rows of a fit do not say."""
    if result.note:
        yield result.note
    if left_out := result.votes - result.counted:
        yield f"{format_count(left_out, 'tie')} left out"
    if result.nu is not None:
        chance, ends = result.nu / (2 + result.nu), _format_ends(result.nu_low, result.nu_high)
        yield f"nu {result.nu:.3f}{ends}: two equal players tie {chance:.0%} of the time"
    if judges:
        yield f"judged by {list_first_names([escape_terminal(judge) for judge in judges], _JUDGES_SHOWN)}"
