"""Scores of players from the votes that count: with intervals, ranks and tiers, or with the reason why there are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import expit

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.preference.pair_verdicts import is_own_pair
from dtef_pipeline.preference.vote_files import VoteColumns, vote_columns
from dtef_pipeline.preference.votes import MAX_CONFIDENT, PlayersVote
from dtef_pipeline.statistics.bradley_terry import (
    PairedOutcomes,
    StrengthFit,
    find_unbeaten,
    fit_strengths,
    list_better_and_worse,
    number_strong_groups,
)
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.clustered_errors import (
    FEWEST_VOTES,
    Bounds,
    ClusteredErrors,
    compute_bounds,
    estimate_errors,
    list_dependences,
    pair_tests,
)
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.text.number_words import format_count, format_plural, list_first_names

_MAX_PLAYERS_LISTED = 3


def find_missing_score_reasons(fit: StrengthFit, counts: PairedOutcomes, players: Sequence[str]) -> list[str]:
    """Return the reason why each player has no score; empty if it has one. `counts`: the votes that count."""
    better, worse = list_better_and_worse(counts)
    group = number_strong_groups(len(players), better, worse)
    top = find_unbeaten(group, better, worse)
    return [_find_score_reason(fit, group, top, players, index) for index in range(len(players))]


def find_missing_interval_reasons(fit: StrengthFit, errors: ClusteredErrors, votes: npt.NDArray[np.float64]) -> list[str]:
    """Return the reason for each player's missing interval, if it has none. `votes` (players,): those that count."""
    nouns = ["prompt" if units is fit.rows.item else "reviewer" for units in list_dependences(fit.rows)] or ["vote"]
    return [_find_interval_reason(dict(zip(nouns, errors.effective[:, i], strict=False)), int(n)) for i, n in enumerate(votes)]


def _find_score_reason(
    fit: StrengthFit, group: npt.NDArray[np.int64], top: npt.NDArray[np.bool_], players: Sequence[str], index: int
) -> str:
    if not fit.no_answer[index]:
        return ""
    if fit.no_answer[index] == "unconverged":
        return "no score: the fit did not converge"
    if fit.no_answer[index] == "unidentified":
        return "no score: the effect of lengths cannot be separated from that of players"
    mask = fit.component == fit.component[index]
    if len(np.unique(group[mask])) == 1:
        return "no finite score: ties or lengths explain the votes better without end"
    names = [players[place] for place in np.flatnonzero(mask & top).tolist()]
    return f"no finite score: none of the others ever beat or tied {list_first_names(names, _MAX_PLAYERS_LISTED)}"


def _find_interval_reason(effective: dict[str, float], votes: int) -> str:
    if votes == 0:
        return "no vote on it counts"
    if votes < FEWEST_VOTES:
        return f"no interval: {format_count(votes, 'vote')}, at least {FEWEST_VOTES} are needed"
    for noun, number in effective.items():
        if round(number) < MIN_CLUSTERS:
            equal = f"{number:.1f} {format_plural(noun)} with equally many votes"
            return f"no interval: its votes are worth {equal}, at least {MIN_CLUSTERS} are needed"
    return "no interval: the votes leave its score nothing to vary by"


Floats = npt.NDArray[np.float64]


class LongerShare(NamedTuple):
    """How often the longer of two responses was preferred."""

    share: float | None
    """Share of the votes that are not ties, on responses of different lengths, 0-1; .5: length has no effect. None if there is no such vote."""
    low: float | None
    high: float | None
    votes: int
    reason: str
    """Why there is no interval; empty if there is one."""


def compute_doublings(lengths: Floats) -> Floats:
    """Return (rows, 1) doublings of length from right to left response, log2((1 + left) / (1 + right)); negative: left is shorter."""
    return np.asarray(np.log2(1 + lengths[:, :1]) - np.log2(1 + lengths[:, 1:]))


def compute_longer_share(lengths: Floats, rows: PairedOutcomes) -> LongerShare:
    """Return the share of votes for the longer response, with a 95 % interval over whole reviewers and prompts.

    It is the fit of two players, the longer and the shorter response: beta is half the logit of the share.
    """
    sign = np.sign(lengths[:, 0] - lengths[:, 1]).astype(np.int64)
    mask = (rows.outcome != 0) & (sign != 0)
    votes, longer = int(mask.sum()), np.zeros(len(sign), dtype=np.int64)
    if not votes:
        return LongerShare(None, None, None, 0, "no vote prefers one of two responses of different lengths")
    units, none = np.ones(len(sign)), np.zeros((len(sign), 0))
    counts = PairedOutcomes(2, longer, longer + 1, sign * rows.outcome, units, units, rows.cluster, none, rows.item).where(mask)
    share, fit = float((counts.outcome > 0).mean()), fit_strengths(counts)
    errors = estimate_errors(fit)
    ends = compute_bounds(fit, errors)
    if np.isnan(ends.se[0]):
        reason = "all votes agree" if fit.separable else find_missing_interval_reasons(fit, errors, errors.votes)[0]
        return LongerShare(share, None, None, votes, reason)
    return LongerShare(share, float(expit(2 * ends.low[0])), float(expit(2 * ends.high[0])), votes, "")


Codes = npt.NDArray[np.int64]

PREFERENCE_SECTION = "preference"


class VoteSettings(Part):
    """The selection and counting of votes in `dtef preference board FILE` and in the table `preference_scores`."""

    ties: Literal["half", "davidson", "drop"] = "half"
    """How a tie counts: as half a win for each, as an outcome with its own parameter (davidson), or not at all."""
    prior_l2: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """Penalty prior_l2 * sum(beta^2). Above 0, every player has a finite score."""
    weight: Literal["confidence"] | None = None
    """With `confidence`, a vote of confidence c counts c / 5. Judges state none: their votes count 1."""
    control: Literal["length"] | None = None
    """With `length`, players are compared as if their texts were equally long."""
    items: list[Annotated[str, Field(min_length=1)]] = []
    """Only votes on items that fit one of these patterns."""
    no_own_judge: bool = False
    """Leave out votes of a judge on responses of its own maker."""
    without_leak_risk: bool = False
    """Leave out pairs from whose texts a name was removed, because they may still tell who wrote them."""


def load_vote_settings(path: Path) -> VoteSettings | None:
    """Return the section of a panel file, or None if it is missing. Raises ConfigError with file, line, found and allowed values."""
    return read_document(path, "panel file", [PREFERENCE_SECTION]).section(PREFERENCE_SECTION, VoteSettings)


@dataclass(frozen=True, slots=True)
class PreferenceScore:
    """One player's score; missing numbers are None, and `reason` says why."""

    model: str
    component: int
    """Place in the list of components, from 0: betas and ranks of different components cannot be compared."""
    rank: int | None
    """Rank within the component, 1 is best."""
    tier: int | None
    """Within the component, from 1: see `_compute_tiers`."""
    beta: float | None
    """Logits, 0 on average over the component; higher is preferred."""
    share: float | None
    """exp(beta) over the sum of the component, 0-1."""
    se: float | None
    """Standard error of beta, over whole reviewers and prompts."""
    low: float | None
    """95 % interval of beta."""
    high: float | None
    se_model: float | None
    """Standard error as if all votes were independent; usually too small."""
    n: int
    """Votes that count, on pairs with this player."""
    n_reviewers: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class LengthEffect:
    """The effect of the length of responses."""

    coefficient: float | None
    """Logits for a response that is twice as long as the other; above 0: the longer one is preferred."""
    se: float | None
    low: float | None
    high: float | None
    longer_share: LongerShare


@dataclass(frozen=True, slots=True)
class PreferenceFit:
    """Scores of all players, and their basis."""

    settings: VoteSettings
    votes: int
    """Votes in the input; with ties `drop` some do not count."""
    n_counted: int
    """Votes used for scores, also if these are not finite."""
    reviewers: int | None
    """Reviewers of the votes that count. None if voters are unknown; then votes are treated as independent."""
    prompts: int | None
    """Prompts of the votes that count; None if unknown."""
    note: str | None
    """Note that intervals hold for these prompts only; None if they also hold for similar ones."""
    separable: bool
    """Whether some component has no finite scores."""
    components: tuple[tuple[str, ...], ...]
    nu: float | None
    nu_low: float | None
    nu_high: float | None
    scores: tuple[PreferenceScore, ...]
    """Sorted by component and rank."""
    length: LengthEffect | None

    def document(self) -> dict[str, Any]:
        """Return the output of `dtef preference board FILE --json`."""
        values = asdict(self)
        settings = values.pop("settings")
        values["components"] = [list(players) for players in self.components]
        values["scores"] = list(values["scores"])
        values |= {"ties": settings.ties, "prior": {"l2": settings.prior_l2} if settings.prior_l2 else None}
        values |= {"weight": settings.weight, "control": settings.control}
        if self.length is None:
            del values["length"]
        else:
            values["length"]["longer_share"] = self.length.longer_share._asdict()
        return values


def fit_votes(votes: VoteColumns, settings: VoteSettings | None = None, lengths: Floats | None = None) -> PreferenceFit:
    """Return the scores of votes. Control by length needs `lengths`; without control they show the effect of length.

    `lengths`: (rows, 2) characters of the left and the right response of each vote. Raises ConfigError for weights without confidences,
    and for control without lengths.
    """
    settings = settings or VoteSettings()
    rows = _build_outcomes(votes, settings, lengths)
    fit = fit_strengths(rows, ties=settings.ties, l2=settings.prior_l2)
    errors = estimate_errors(fit)
    ends = compute_bounds(fit, errors)
    counts = rows.where(rows.outcome != 0) if settings.ties == "drop" else rows
    prompts = None if counts.item is None else len(np.unique(counts.item))
    # Without a tie nu is 0, and its logarithm has no interval.
    low_nu, high_nu = (_convert_number(np.exp(end[-1])) if fit.nu else None for end in (ends.low, ends.high))
    return PreferenceFit(
        settings=settings,
        votes=votes.votes,
        n_counted=int(counts.times.sum()),
        reviewers=None if counts.cluster is None else len(np.unique(counts.cluster)),
        prompts=prompts,
        note=_find_note(fit, ends, prompts),
        separable=fit.separable,
        components=_list_components(votes, fit),
        nu=fit.nu,
        nu_low=low_nu,
        nu_high=high_nu,
        scores=_build_scores(votes, counts, fit, errors, ends),
        length=None if lengths is None else _build_length_effect(fit, ends, compute_longer_share(lengths, rows)),
    )


def _build_outcomes(votes: VoteColumns, settings: VoteSettings, lengths: Floats | None) -> PairedOutcomes:
    n = len(votes.left)
    weight = np.ones(n)
    if settings.weight == "confidence":
        if votes.confidence is None:
            raise ConfigError(
                f"{votes.source}: no column confidence; `weight: confidence` needs 1 to {MAX_CONFIDENT} in every vote"
            )
        weight = votes.confidence / MAX_CONFIDENT
    if settings.control and lengths is None:
        raise ConfigError(
            "control: length, in the panel file, needs the responses, which the store has; leave it out for a file"
        )
    reviewer, prompt = (
        None if names is None else np.unique(names, return_inverse=True)[1] for names in (votes.reviewer_ids, votes.prompt_ids)
    )
    control = compute_doublings(lengths) if settings.control and lengths is not None else np.zeros((n, 0))
    return PairedOutcomes(
        len(votes.players), votes.left, votes.right, votes.outcome, weight, votes.counts, reviewer, control, prompt
    )


def _find_note(fit: StrengthFit, ends: Bounds, prompts: int | None) -> str | None:
    if not np.isfinite(ends.se).any() or any(units is fit.rows.item for units in list_dependences(fit.rows)):
        return None
    reason = (
        "the votes have no prompt ids"
        if prompts is None
        else f"{format_count(prompts, 'prompt')} with unequal votes are worth fewer than {MIN_CLUSTERS}"
        if prompts >= MIN_CLUSTERS
        else f"{format_count(prompts, 'prompt')}, at least {MIN_CLUSTERS} are needed"
    )
    return f"intervals hold for the prompts of these votes only, not for others like them: {reason}"


def _list_components(votes: VoteColumns, fit: StrengthFit) -> tuple[tuple[str, ...], ...]:
    names = np.array(votes.players, dtype=object)
    return tuple(tuple(names[fit.component == number]) for number in range(int(fit.component.max(initial=-1)) + 1))


def _build_scores(
    votes: VoteColumns, counts: PairedOutcomes, fit: StrengthFit, errors: ClusteredErrors, ends: Bounds
) -> tuple[PreferenceScore, ...]:
    players = len(votes.players)
    n = np.bincount(np.concatenate([counts.left, counts.right]), weights=np.tile(counts.times, 2), minlength=players).astype(
        np.float64
    )
    rank, reviewers = rank_numbers(fit.beta, fit.component), _count_reviewers(counts)
    tier = _compute_tiers(votes, fit, errors, rank)
    no_score, no_bounds = find_missing_score_reasons(fit, counts, votes.players), find_missing_interval_reasons(fit, errors, n)
    numbers = {"beta": fit.beta, "share": fit.share, "se_model": fit.model_errors, **ends._asdict()}
    scores = [
        PreferenceScore(
            model=name,
            component=int(fit.component[index]),
            rank=None if np.isnan(rank[index]) else int(rank[index]),
            tier=tier[index],
            **{name: _convert_number(values[index]) for name, values in numbers.items()},
            n=int(n[index]),
            n_reviewers=None if reviewers is None else int(reviewers[index]),
            reason=no_score[index] or ("" if np.isfinite(ends.se[index]) else no_bounds[index]),
        )
        for index, name in enumerate(votes.players)
    ]
    return tuple(sorted(scores, key=lambda score: (score.component, score.rank or players + 1, score.model)))


def _compute_tiers(votes: VoteColumns, fit: StrengthFit, errors: ClusteredErrors, rank: Floats) -> list[int | None]:
    """Return tiers, from 1 in each component: a tier holds its first player and all that follow until one that the first beats.

    None for players that are not ranked, or in no test because of too few clusters.
    """
    tests = pair_tests(fit, errors)
    has_test, is_won = ~np.isnan(tests.p), tests.p_adjusted < SIGNIFICANCE
    tested = np.isin(np.arange(len(rank)), (tests.better[has_test], tests.worse[has_test])) & ~np.isnan(rank)
    beaten = set(zip(tests.better[is_won].tolist(), tests.worse[is_won].tolist(), strict=True))
    result: list[int | None] = [None] * len(rank)
    component, first, tier = -1, -1, 0
    players = np.flatnonzero(tested).tolist()
    for player in sorted(players, key=lambda index: (fit.component[index], rank[index], votes.players[index])):
        if fit.component[player] != component:
            component, first, tier = int(fit.component[player]), player, 1
        elif (first, player) in beaten:
            first, tier = player, tier + 1
        result[player] = tier
    return result


def _count_reviewers(counts: PairedOutcomes) -> Codes | None:
    """Return the (players,) number of reviewers who compared each player, or None if voters are unknown."""
    if counts.cluster is None:
        return None
    pairs = np.stack([np.concatenate([counts.left, counts.right]), np.tile(counts.cluster, 2)])
    return np.bincount(np.unique(pairs, axis=1)[0], minlength=counts.players)


def _build_length_effect(fit: StrengthFit, ends: Bounds, longer: LongerShare) -> LengthEffect:
    if not fit.coefficients.size:
        return LengthEffect(None, None, None, None, longer)
    index = len(fit.beta)
    coefficient, se, low, high = (_convert_number(values[index]) for values in (fit.estimates, *ends))
    return LengthEffect(coefficient, se, low, high, longer)


def _convert_number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


_SIGN_OF = {"left": 1, "right": -1, "tie": 0}


@dataclass(frozen=True, slots=True)
class FilteredVotes:
    """The votes that count, and the number excluded by reason."""

    votes: tuple[PlayersVote, ...]
    leaks_left_out: int
    self_judged: int
    """Included votes of judges on responses of their own maker."""
    self_judged_left_out: int


def filter_votes(votes: Iterable[PlayersVote], settings: VoteSettings, own_servers: Collection[str] = ()) -> FilteredVotes:
    """Return the votes that count. A vote excluded for two reasons is counted as a leak. `own_servers`: see `is_self_judged`."""
    selection = filter_by_item(votes, settings.items)
    clean = [vote for vote in selection if not (settings.without_leak_risk and vote.leak_risk)]
    flags = [
        vote.reviewer_kind == "judge" and is_own_pair(vote.reviewer_id, vote.left, vote.right, own_servers) for vote in clean
    ]
    result = [vote for vote, is_own in zip(clean, flags, strict=True) if not (settings.no_own_judge and is_own)]
    own_counts = (0, sum(flags)) if settings.no_own_judge else (sum(flags), 0)
    return FilteredVotes(tuple(result), len(selection) - len(clean), *own_counts)


def filter_by_item(votes: Iterable[PlayersVote], patterns: Sequence[str]) -> list[PlayersVote]:
    """Return the votes on items that match any of the patterns, such as `mmlu/*`, or all without patterns."""
    return [vote for vote in votes if not patterns or any(fnmatchcase(vote.item_id, pattern) for pattern in patterns)]


def build_vote_columns(where: str, votes: Sequence[PlayersVote]) -> VoteColumns:
    """Return the votes as columns, without confidences unless every vote has one. `where`: the store's name in errors."""
    confidence = [vote.confidence for vote in votes]
    confidences = [value for value in confidence if value is not None]
    return vote_columns(
        where,
        [(vote.left, vote.right) for vote in votes],
        np.array([_SIGN_OF[vote.preferred_side] for vote in votes], dtype=np.int64),
        np.ones(len(votes)),
        reviewer_ids=tuple(vote.reviewer_id for vote in votes),
        confidence=np.array(confidences, dtype=np.float64) if votes and len(confidences) == len(votes) else None,
        prompt_ids=tuple(vote.item_id for vote in votes),
    )


def find_unweighted_reason(votes: Sequence[PlayersVote]) -> str | None:
    """Return why votes cannot be weighted by confidence, or None if every vote has one."""
    missing = [vote for vote in votes if vote.confidence is None]
    if not missing:
        return None
    if all(vote.reviewer_kind == "judge" for vote in votes):
        return "judges give no confidence"
    return f"{len(missing):,} of {format_count(len(votes), 'vote')} have no confidence"


def measure_text_lengths(votes: Sequence[PlayersVote]) -> npt.NDArray[np.float64]:
    """Return (votes, 2) characters of the left and the right text of each vote."""
    return np.array([(vote.left_length, vote.right_length) for vote in votes], dtype=np.float64).reshape(len(votes), 2)


def compute_votes_version(votes: Sequence[PlayersVote]) -> str:
    """Return the number of votes and an order-independent hash of them: `120-7d0c7767...`. Any change of votes gives another version."""
    hashes = sorted(digest("vote of players", *(getattr(vote, name) for name in PlayersVote.__slots__)) for vote in votes)
    return f"{len(votes)}-{digest('votes of players', *hashes)[:16]}"
