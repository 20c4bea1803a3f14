"""`dtef preference board --now`, and which votes of the store a command is about."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
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
from dtef_pipeline.preference.published_scores import position
from dtef_pipeline.preference.response_lengths import read_lengths
from dtef_pipeline.preference.stored_votes import (
    CountedVotes,
    WhichVotes,
    columns_of_votes,
    counted_votes,
    text_lengths,
    votes_of_reviewers,
    why_unweighted,
)
from dtef_pipeline.preference.vote_files import read_votes, repeated_votes
from dtef_pipeline.preference.vote_fit import (
    FittedPreference,
    LengthEffect,
    PreferenceScore,
    VoteSettings,
    fit_votes,
)
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.printable import printable
from resources.settings import Settings
from resources.votes.vote_store import VoteStore, votes_of_store


def with_named_judges(patterns: tuple[str, ...], judges: Collection[str]) -> tuple[str, ...]:
    """The patterns, and the ids of those judges that the patterns mean as names, collections or selectors of models.

    `judges`: the ids of all that voted. A model with other settings is another judge, whatever it was told it is the same.
    """
    if not patterns or not judges:
        return patterns
    named = set(_named(patterns, _known_models()))
    return (*patterns, *sorted(judge for judge in judges if _without_wording(judge) in named))


def _named(patterns: Iterable[str], known: Models) -> Iterator[str]:
    """The ids, but for what judges are told, of all models that the patterns name."""
    from dtef_pipeline.preference.judged_pairs import judge_reviewer_id, pair_judges

    for pattern in patterns:
        for name in {pattern, *(one for one in known.specs if fnmatchcase(one, pattern))}:
            try:
                yield from (_without_wording(judge_reviewer_id(spec)) for spec in pair_judges((name,), known))
            except ConfigError:
                continue  # It names no model, or one that cannot judge.


def _without_wording(judge: str) -> str:
    return judge.rpartition("#")[0]


USUAL_REVIEWERS = "person"
_VOTING_JUDGES_NAMED = 5
_ITEMS_NAMED = 3


def stored_votes(reviewer_kind: str, family: str | None = None) -> tuple[str, list[PlayersVote]]:
    """What the store is called, and its votes of this kind of reviewer that are not voided."""
    with VoteStore(Settings.from_environment().responses_url) as store:
        return store.name, votes_of_store(store, family=family, reviewer_kind=reviewer_kind)


def _nothing(where: str, reviewer_kind: str, family: str | None) -> str:
    whose = "people" if reviewer_kind == USUAL_REVIEWERS else "judges"
    on = f" on responses of {family}" if family else ""
    return f"nothing to fit: {where} holds no votes of {whose}{on}; `dtef preference votes` lists those there are"


def _items(votes: list[PlayersVote]) -> str:
    ids = sorted({vote.item_id for vote in votes})
    return f"items: {and_more(ids, _ITEMS_NAMED)}"


def _known(votes: list[PlayersVote]) -> str:
    """Who voted. People's ids say nothing to those who do not know them, so they are only counted."""
    ids = sorted({vote.reviewer_id for vote in votes})
    if votes[0].reviewer_kind == "judge":
        return f"{counted(len(ids), 'judge')} voted: {and_more(ids, _VOTING_JUDGES_NAMED)}"
    return f"{counted(len(ids), 'reviewer')} voted; `dtef preference votes` lists their ids"


def _known_models() -> Models:
    # Loads every family, which votes of people and patterns of ids do not need.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.known_models import known_models

    return known_models(Settings.from_environment(), COMPUTED_MODELS)


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


_SCORE_VIEW = TableView(
    ("component", "rank", "tier", "model", "beta", "interval", "share", "n"),
    ("model", "beta"),
    ("share", "n"),
    "beta",
    "reason",
)


def fit(file: Path | None, output: str, responses: Path | None, **of_store: Any) -> None:
    how = vote_settings(Settings.from_environment())
    if file is None:
        if responses is not None:
            raise click.UsageError("--responses goes with FILE alone: the store has the texts itself.")
        _show(*_fit_of_store(how, **of_store), output)
        return
    if any(of_store.values()):
        raise click.UsageError("--family, --item, --reviewer and --judge choose votes of the store: give no FILE.")
    if how.control and responses is None:
        raise click.UsageError("`control: length` in the panel file needs --responses FILE: how long the responses are.")
    votes = read_votes(file)
    _show(str(file), fit_votes(votes, how.options, None if responses is None else read_lengths(responses)), {}, output)
    if again := repeated_votes(votes):
        who = "of a reviewer on a pair and prompt that the reviewer voted on before"
        click.echo(
            f"warning: {file}: {counted(again, 'vote')} {who}; all are counted, a store would take the first alone", err=True
        )


def _fit_of_store(
    how: VoteSettings, family: str | None, items: Sequence[str], reviewers: Sequence[str], judges: tuple[str, ...]
) -> tuple[str, FittedPreference, dict[str, Any]]:
    """What the store is called, the fit of its votes that are meant and not voided, and what there is to say of judges.

    The votes are those of judges where some are named: they are never mixed with those of people. Raises StoreError where there are no such
    votes at all, and ConfigError where no vote fits.
    """
    kind = "judge" if judges else USUAL_REVIEWERS
    where, votes = stored_votes(kind, family)
    if not votes:
        raise StoreError(_nothing(where, kind, family))
    meant = votes_of_reviewers(votes, reviewers, with_named_judges(judges, {vote.reviewer_id for vote in votes}))
    if not meant:
        given = " ".join([*(f"--reviewer {one}" for one in reviewers), *(f"--judge {one}" for one in judges)])
        raise ConfigError(f"{given}: got none that voted; {_known(votes)}")
    servers = _known_models().own_servers if judges else ()
    which = WhichVotes(tuple(items or how.items), not how.without_leak_risk, not how.no_own_judge, servers)
    counts = counted_votes(meant, which)
    if not counts.votes:
        raise ConfigError(f"nothing to fit: none of {counted(len(meant), 'vote')} is on such an item or pair; {_items(meant)}")
    if how.options.weight and (why := why_unweighted(counts.votes)):
        raise ConfigError(
            f"weight: confidence, in the panel file: {why}; leave it out, or choose votes that have one by --reviewer, --family or --item"
        )
    found = fit_votes(columns_of_votes(where, counts.votes), how.options, text_lengths(counts.votes))
    return where, found, _of_judges(counts) if judges else {}


def _of_judges(counts: CountedVotes) -> dict[str, Any]:
    judges = sorted({vote.reviewer_id for vote in counts.votes})
    own = {"self_judged": counts.self_judged, "self_judged_left_out": counts.self_judged_left_out}
    return {"judges": judges, **own, **position(counts.votes)}


def _show(where: str, found: FittedPreference, judged: dict[str, Any], output: str) -> None:
    if output == "json":
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
    print_rows(_SCORE_VIEW, frame, output, [*_lines(found), *_lines_of_judges(judged)], _PREFERENCE_WORDS)


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
