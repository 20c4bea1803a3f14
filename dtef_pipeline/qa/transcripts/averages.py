"""Averages over transcripts: what is null counts nowhere, and how much of it there was is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum


@dataclass(frozen=True, slots=True)
class MeanOfScores:
    """A mean, and of how many."""

    value: float | None
    """None: nothing was scored."""
    n_scored: int
    n_skipped: int
    """Scores that were null."""


@dataclass(frozen=True, slots=True)
class TranscriptAverages:
    """Means per transcript and over all."""

    transcripts: Mapping[str, MeanOfScores]
    micro: MeanOfScores
    """Over items: a transcript counts by its items."""
    macro: MeanOfScores
    """Over transcripts: each that has a mean counts once; `n_skipped`: transcripts of nulls."""
    without: MeanOfScores = MeanOfScores(None, 0, 0)
    """Over what is of no transcript: it counts in `micro`, and in no other mean."""


def mean_of_scores(scores: Sequence[float | None]) -> MeanOfScores:
    """The mean of what is not null; null when all is."""
    scored = [score for score in scores if score is not None]
    return MeanOfScores(fsum(scored) / len(scored) if scored else None, len(scored), len(scores) - len(scored))


def transcript_averages(
    scores: Mapping[str, Sequence[float | None]],
    items: Sequence[float | None] | None = None,
    without: Sequence[float | None] = (),
) -> TranscriptAverages:
    """Means of scores, 0-1, per transcript and over all of them; null: not scored, with the transcript still listed.

    Args:
        scores: by transcript, one per item.
        items: one per item, where an item can be of several transcripts. None: `scores` and `without` have each item once.
        without: of the items that are of no transcript.
    """
    means = {name: mean_of_scores(own) for name, own in scores.items()}
    every = [*(score for own in scores.values() for score in own), *without] if items is None else items
    macro = mean_of_scores([mean.value for mean in means.values()])
    return TranscriptAverages(means, mean_of_scores(every), macro, mean_of_scores(without))
