"""Votes of the store as fits take them: chosen by item, with the lengths of the texts that they are on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from dtef_pipeline.identity import digest
from dtef_pipeline.preference.judge_ids import is_own_vote, matches_judge, parse_judge_model
from dtef_pipeline.preference.vote_files import VoteColumns, vote_columns
from dtef_pipeline.preference.vote_fit import VoteSettings
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.text.quantity_words import format_count

_SIGN_OF = {"left": 1, "right": -1, "tie": 0}


@dataclass(frozen=True, slots=True)
class FilteredVotes:
    """The votes that count, and how many do not for which reason."""

    votes: tuple[PlayersVote, ...]
    leaks_left_out: int
    self_judged: int
    """Among the votes that count: of judges, on responses of their own maker."""
    self_judged_left_out: int


def filter_votes(votes: Iterable[PlayersVote], settings: VoteSettings, own_servers: Collection[str] = ()) -> FilteredVotes:
    """The votes that count. One that is left out for two reasons is counted with the leaks. `own_servers`: as of `is_self_judged`."""
    selection = filter_by_item(votes, settings.items)
    clean = [vote for vote in selection if not (settings.without_leak_risk and vote.leak_risk)]
    flags = [is_own_vote(vote, own_servers) for vote in clean]
    result = [vote for vote, is_own in zip(clean, flags, strict=True) if not (settings.no_own_judge and is_own)]
    own_counts = (0, sum(flags)) if settings.no_own_judge else (sum(flags), 0)
    return FilteredVotes(tuple(result), len(selection) - len(clean), *own_counts)


def filter_by_item(votes: Iterable[PlayersVote], patterns: Sequence[str]) -> list[PlayersVote]:
    """The votes on items that fit any of the patterns, such as `mmlu/*`; without patterns all of them."""
    return [vote for vote in votes if not patterns or any(fnmatchcase(vote.item_id, pattern) for pattern in patterns)]


def filter_by_reviewer(votes: Iterable[PlayersVote], reviewers: Sequence[str], judges: Sequence[str] = ()) -> list[PlayersVote]:
    """The votes of reviewers whose id fits any pattern, and of judges that are meant (`matches_judge`); without patterns of all."""
    return [
        vote
        for vote in votes
        if (not reviewers or any(vote.reviewer_id == glob or fnmatchcase(vote.reviewer_id, glob) for glob in reviewers))
        and (not judges or matches_judge(vote.reviewer_id, judges))
    ]


def build_vote_columns(where: str, votes: Sequence[PlayersVote]) -> VoteColumns:
    """The votes as columns. Without confidences, unless every vote has one. `where`: the store, as errors name it.

    A model is one reviewer, whatever its temperature and its prompt: its votes share its taste.
    """
    confidence = [vote.confidence for vote in votes]
    confidences = [value for value in confidence if value is not None]
    return vote_columns(
        where,
        [(vote.left, vote.right) for vote in votes],
        np.array([_SIGN_OF[vote.preferred] for vote in votes], dtype=np.int64),
        np.ones(len(votes)),
        reviewer_ids=tuple(
            parse_judge_model(vote.reviewer_id) if vote.reviewer_kind == "judge" else vote.reviewer_id for vote in votes
        ),
        confidence=np.array(confidences, dtype=np.float64) if votes and len(confidences) == len(votes) else None,
        prompt_ids=tuple(vote.item_id for vote in votes),
    )


def find_unweighted_reason(votes: Sequence[PlayersVote]) -> str | None:
    """Why votes cannot be weighted by confidence; None: every vote has one."""
    without = [vote for vote in votes if vote.confidence is None]
    if not without:
        return None
    if all(vote.reviewer_kind == "judge" for vote in votes):
        return "judges give no confidence"
    return f"{len(without):,} of {format_count(len(votes), 'vote')} have no confidence"


def measure_text_lengths(votes: Sequence[PlayersVote]) -> npt.NDArray[np.float64]:
    """(votes, 2) characters of the left and the right text of each vote."""
    return np.array([(vote.left_length, vote.right_length) for vote in votes], dtype=np.float64).reshape(len(votes), 2)


def compute_votes_version(votes: Sequence[PlayersVote]) -> str:
    """How many votes there are, and a hash of them in any order: `120-7d0c7767...`. Another vote, or one less, gives another version."""
    hashes = sorted(digest("vote of players", *(getattr(vote, name) for name in PlayersVote.__slots__)) for vote in votes)
    return f"{len(votes)}-{digest('votes of players', *hashes)[:16]}"
