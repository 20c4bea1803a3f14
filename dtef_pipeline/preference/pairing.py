"""Which responses are shown beside each other: same item, same draw, different players, every player about equally often.

Pairs follow from the responses and from the pairs there are already, and from nothing else: no clock, no random numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from dtef_pipeline.identity import digest
from dtef_pipeline.judging.hidden_names import Blinding
from dtef_pipeline.preference.pair_blinding import normalize_for_comparison
from dtef_pipeline.preference.votes import PairedResponse, VotePair, vote_pair

_Candidates = tuple[PairedResponse, PairedResponse]
_NO_NAMES = Blinding(())


def make_new_pairs(
    responses: Iterable[PairedResponse],
    old_pairs: Iterable[VotePair] = (),
    *,
    names: Blinding = _NO_NAMES,
    per_item: int | None = None,
    most: int | None = None,
) -> list[VotePair]:
    """Pairs that are not made yet, at most `per_item` of an item and `most` of all, spread over the items.

    Both responses are of one family, item, draw and snapshot, of different players, and differ after normalising as reviewers read them,
    without `names`. Within an item no player stands in more than one pair more than another, where enough pairs are left for it. `old_pairs` are
    the pairs that the responses stand in already: they are not made again, and count in what is balanced and in `per_item`.
    """
    items: dict[tuple[str, str], list[PairedResponse]] = defaultdict(list)
    for response in {response.response_id: response for response in responses}.values():
        items[response.family, response.item_id].append(response)
    before: dict[tuple[str, str], list[VotePair]] = defaultdict(list)
    for pair in old_pairs:
        before[pair.family, pair.item_id].append(pair)
    by_item = (
        _make_item_pairs(items[key], before[key], names, per_item)
        for key in sorted(items, key=lambda key: (digest("pairing", *key), key))
    )
    turns = zip_longest(*by_item)
    spread = [pair for turn in turns for pair in turn if pair is not None]
    return spread if most is None else spread[:most]


def _make_item_pairs(
    responses: Sequence[PairedResponse], old_pairs: Sequence[VotePair], names: Blinding, per_item: int | None
) -> list[VotePair]:
    """The new pairs of one item: each time of the player who was shown least, with the one of the others who was."""
    by_id = {response.response_id: response for response in responses}
    exposure: Counter[str] = Counter()
    for pair in old_pairs:
        exposure.update(by_id[response_id].player for response_id in (pair.left, pair.right) if response_id in by_id)
    room = None if per_item is None else max(0, per_item - len(old_pairs))
    known_pairs = {(pair.left, pair.right) for pair in old_pairs}
    waiting: dict[str, dict[int, _Candidates]] = defaultdict(dict)
    for place, candidates in enumerate(_list_candidates(responses, names)):
        if tuple(sorted(candidate.response_id for candidate in candidates)) not in known_pairs:
            for response in candidates:
                waiting[response.player][place] = candidates
    new_pairs: list[VotePair] = []
    while waiting and (room is None or len(new_pairs) < room):
        least = min(waiting, key=lambda player: (exposure[player], next(iter(waiting[player]))))
        place, candidates = min(waiting[least].items(), key=lambda item: (_count_exposure(exposure, item[1]), item[0]))
        for player in (response.player for response in candidates):
            exposure[player] += 1
            del waiting[player][place]
            if not waiting[player]:
                del waiting[player]
        new_pairs.append(vote_pair(*candidates))
    return new_pairs


def _count_exposure(exposure: Counter[str], candidates: _Candidates) -> int:
    return exposure[candidates[0].player] + exposure[candidates[1].player]


def _list_candidates(responses: Sequence[PairedResponse], names: Blinding) -> Iterator[_Candidates]:
    """All pairs that may be made, as a tournament plays them: in turns in which everybody plays once."""
    groups: dict[tuple[int, str], list[PairedResponse]] = defaultdict(list)
    for response in responses:
        groups[response.draw, response.snapshot].append(response)
    read = {entry.response_id: normalize_for_comparison(entry.text, entry.player, names) for entry in responses}
    for key in sorted(groups):
        seats = sorted(groups[key], key=lambda entry: digest("seat", entry.response_id))
        for left, right in _schedule_tournament(seats):
            if left.player != right.player and read[left.response_id] != read[right.response_id]:
                yield left, right


def _schedule_tournament(seats: Sequence[PairedResponse]) -> Iterator[_Candidates]:
    """Everybody against everybody by the circle method: one seat stays, the others move on by one. An odd one out pauses."""
    circle: list[PairedResponse | None] = [*seats, *([None] if len(seats) % 2 else [])]
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        for place in range(half):
            left, right = circle[place], circle[-1 - place]
            if left is not None and right is not None:
                yield left, right
        circle = [circle[0], circle[-1], *circle[1:-1]]
