"""Which model a judge of pairs is, and which of its votes are on responses of its own maker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from dtef_pipeline.asking.makers import find_maker
from dtef_pipeline.judging.judges import is_self_judged
from dtef_pipeline.preference.votes import PlayersVote

_JUDGE_ID = re.compile(r"pairs\(([^\[\]]{1,200})(?:\[[^\n]{0,200}\])?\)#[0-9a-f]{8}")
_PERSONA = re.compile(r"[^/@\[\]]{1,200}:v[0-9]{1,9}@")


def parse_judge_model(reviewer_id: str) -> str:
    """The model string of a judge, without its settings and the hash of its prompt: `openai/gpt-4.1-mini` of
    `pairs(openai/gpt-4.1-mini[temperature=0])#1a2b3c4d`. An id that names no model (another tool's) is returned as it is."""
    match = _JUDGE_ID.fullmatch(reviewer_id)
    return match[1] if match else reviewer_id


def is_id_of_judge(reviewer_id: str) -> bool:
    """Whether an id has the form that the ids of judges have here, whoever has voted under it."""
    return _JUDGE_ID.fullmatch(reviewer_id) is not None


def shorten_judge_names(reviewer_ids: Iterable[str]) -> dict[str, str]:
    """What each judge is called where there is little room: its model without maker and settings, or its id where two would be called alike."""
    ids = sorted(set(reviewer_ids))
    models = {judge: parse_judge_model(judge) for judge in ids}
    short = {judge: judge if model == judge else model.rpartition("/")[2] for judge, model in models.items()}
    counts = Counter(short.values())
    return {judge: name if counts[name] == 1 else judge for judge, name in short.items()}


def matches_judge(reviewer_id: str, patterns: Sequence[str]) -> bool:
    """Whether a judge fits any pattern by its id, its model string (`openai/gpt-4.1-mini`), or what stands last in that (`gpt-4.1-mini`)."""
    model = parse_judge_model(reviewer_id)
    return any(
        reviewer_id == pattern or any(fnmatchcase(name, pattern) for name in (reviewer_id, model, model.rpartition("/")[2]))
        for pattern in patterns
    )


def is_own_vote(vote: PlayersVote, own_servers: Collection[str] = ()) -> bool:
    """Whether a judge voted on a response of a model of its own maker, its own among them: `is_self_judged` of either side."""
    return vote.reviewer_kind == "judge" and is_own_pair(vote.reviewer_id, vote.left, vote.right, own_servers)


def is_own_pair(reviewer_id: str, left: str, right: str, own_servers: Collection[str] = ()) -> bool:
    """Whether either player's model is of the judge's maker. A player without a maker's folder, as in other tools, is recognised by its name."""
    judge = parse_judge_model(reviewer_id)
    return any(_is_own(judge, _PERSONA.sub("", player, count=1), own_servers) for player in {left, right})


def _is_own(judge: str, player: str, own_servers: Collection[str]) -> bool:
    if "/" in player:
        return is_self_judged(judge, player, own_servers)
    maker = find_maker(f"of/{player}", own_server=True)
    return player == judge.rpartition("/")[2] or (
        maker is not None and maker == find_maker(judge, own_server=judge in own_servers)
    )
