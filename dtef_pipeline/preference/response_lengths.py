"""How long the responses of a vote are, and whether reviewers prefer the longer one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.preference.vote_files import VoteColumns
from dtef_pipeline.preference.why_unscored import why_no_bounds
from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, fit_strengths
from dtef_pipeline.statistics.clustered_errors import bounds, clustered_errors

Floats = npt.NDArray[np.float64]
Lengths = Mapping[tuple[str, str], int]
"""Characters of the response to each (prompt id, player)."""


class LongerShare(NamedTuple):
    """How often the longer of two responses was preferred."""

    share: float | None
    """Of the votes that are no ties, on responses of different lengths, 0-1; .5: length plays no part. None: there is no such vote."""
    low: float | None
    high: float | None
    votes: int
    reason: str
    """Why there is no interval; empty where there is one."""


def read_lengths(path: Path) -> Lengths:
    """Lengths of the texts in a JSONL file with `prompt_id, model, text` in each line, other keys ignored.

    Raises SourceError with the line of the first fault, and for a second text of one model to one prompt.
    """
    found: dict[tuple[str, str], int] = {}
    allowed = "a JSON object with prompt_id, model and text"
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError("cannot be read", where=str(path), arrived=str(error), allowed="UTF-8 with JSON lines") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _object(line)
        if (
            row is None
            or not isinstance(row.get("model"), str)
            or not isinstance(row.get("text"), str)
            or "prompt_id" not in row
        ):
            raise SourceError("is no response", where=str(path), line=number, arrived=line[:80], allowed=allowed)
        key = (str(row["prompt_id"]), row["model"].strip())
        if key in found:
            allowed = "one text for each prompt_id and model"
            raise SourceError("is a second response", where=str(path), line=number, arrived=" ".join(key)[:80], allowed=allowed)
        found[key] = len(row["text"])
    return found


def lengths_of_votes(votes: VoteColumns, lengths: Lengths) -> Floats:
    """(rows, 2) characters of the left and the right response of each vote.

    Raises ConfigError where the votes have no prompt ids, or a response is missing.
    """
    if votes.prompt_ids is None:
        raise ConfigError(f"{votes.where}: no column prompt_id; length control needs to know which responses the votes are on")
    found = np.empty((len(votes.left), 2))
    for row, prompt_id in enumerate(votes.prompt_ids):
        for side, player in enumerate((votes.left[row], votes.right[row])):
            key = (prompt_id, votes.players[player])
            if key not in lengths:
                raise ConfigError(
                    f"{votes.where}: no response of {key[1]!r} to prompt_id {prompt_id!r} in the file of responses"
                )
            found[row, side] = lengths[key]
    return found


def doublings(lengths: Floats) -> Floats:
    """(rows, 1): how many times the left response is twice as long as the right one, log2((1 + left) / (1 + right)); negative: shorter."""
    return np.asarray(np.log2(1 + lengths[:, :1]) - np.log2(1 + lengths[:, 1:]))


def longer_share(lengths: Floats, rows: PairedOutcomes) -> LongerShare:
    """Share of votes for the longer response, with a 95 % interval over whole reviewers and prompts.

    It is the fit of two players, the longer and the shorter response: beta is half the logit of the share.
    """
    sign = np.sign(lengths[:, 0] - lengths[:, 1]).astype(np.int64)
    decided = (rows.outcome != 0) & (sign != 0)
    votes, longer = int(decided.sum()), np.zeros(len(sign), dtype=np.int64)
    if not votes:
        return LongerShare(None, None, None, 0, "no vote prefers one of two responses of different lengths")
    ones, none = np.ones(len(sign)), np.zeros((len(sign), 0))
    both = PairedOutcomes(2, longer, longer + 1, sign * rows.outcome, ones, ones, rows.cluster, none, rows.item).where(decided)
    share, fit = float((both.outcome > 0).mean()), fit_strengths(both)
    errors = clustered_errors(fit)
    ends = bounds(fit, errors)
    if np.isnan(ends.se[0]):
        why = "all votes agree" if fit.separable else why_no_bounds(fit, errors, errors.votes)[0]
        return LongerShare(share, None, None, votes, why)
    return LongerShare(share, float(expit(2 * ends.low[0])), float(expit(2 * ends.high[0])), votes, "")


def _object(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
