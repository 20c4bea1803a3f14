"""The choice of pairs, and what a reviewer sees of a pair: its id, the prompt, and two texts without names.

A pair has responses of two players to the same item in the same draw. All players are in about the same number of pairs.

New pairs depend only on the responses and the existing pairs, not on a clock or random numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.identity import digest, normalize_text
from dtef_pipeline.judging.hidden_names import Blinding, Name
from dtef_pipeline.preference.votes import PairedResponse, Side, VotePair, vote_pair
from dtef_pipeline.text.folding import fold_text

_MANY_DECIMALS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{3,25}(?:e-[0-9]{1,3})?|(?:\.[0-9]{1,2})?e-[0-9]{1,3})")


class BlindedPair(NamedTuple):
    """A served pair, with the served field names."""

    pair_id: str
    prompt: str
    run_a: str
    run_b: str

    def serialize(self) -> dict[str, str]:
        """Return an object with these four fields and no other."""
        return self._asdict()


def choose_shown_as_a(pair_id: str, salt: str) -> Side:
    """Return which response of a pair is shown as A: `right` if the first bit is 1 of the SHA-256 of the pair's id, a line feed and the
    salt.

    The texts are hashed as UTF-8; the first bit is the highest of the first byte. The choice is unpredictable without the salt.
    """
    return "right" if hashlib.sha256(f"{pair_id}\n{salt}".encode()).digest()[0] >> 7 else "left"


def build_blinded_pair(pair: VotePair, left: PairedResponse, right: PairedResponse, names: Blinding, salt: str) -> BlindedPair:
    """Return the pair as shown to reviewers. `names`: those of all possible authors, not only of these two."""
    names = names.add_pair_names((*left.names, *right.names))
    first, second = (left, right) if choose_shown_as_a(pair.pair_id, salt) == "left" else (right, left)
    texts = (read_text(response.text, response.player, names) for response in (first, second))
    return BlindedPair(pair.pair_id, names.scrub(left.prompt).text, *texts)


def read_text(text: str, player: str, names: Blinding) -> str:
    """Return a response as shown to reviewers: its text without names; for computed players, numbers with 2 decimals."""
    readable = _MANY_DECIMALS.sub(lambda match: f"{float(match[0]):.2f}", text) if is_computed(player) else text
    return names.scrub(readable).text


def normalize_for_comparison(text: str, player: str, names: Blinding) -> str:
    """Return the shown text without differences in case and white space, to find texts that reviewers cannot distinguish."""
    return normalize_text(read_text(text, player, names))


def count_replaced_names(names: Blinding, pairs: Iterable[tuple[str, PairedResponse, PairedResponse]]) -> dict[str, int]:
    """Return how many names are removed from a pair's two texts, by pair id."""
    cache: dict[tuple[str, frozenset[Name]], int] = {}
    sure_names = frozenset(names.certain_names)

    def count(response: PairedResponse, blinding: Blinding, pair_names: frozenset[Name]) -> int:
        # Most texts contain no further name, so they are scrubbed once for all pairs.
        plain = fold_text(response.text)[0]
        present = frozenset(name for name in pair_names if name.core in plain)
        key = response.response_id, present
        if key not in cache:
            cache[key] = (blinding if present else names).scrub(response.text).n_replaced
        return cache[key]

    counts = {}
    for pair_id, left, right in pairs:
        blinding = names.add_pair_names((*left.names, *right.names))
        pair_names = frozenset(blinding.certain_names) - sure_names
        counts[pair_id] = count(left, blinding, pair_names) + count(right, blinding, pair_names)
    return counts


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
    """Return new pairs, at most `per_item` of an item and `most` in total, spread over the items.

    Both responses are of one family, item, draw and snapshot, of different players, and differ after normalising as reviewers read them,
    without `names`. Within an item players' numbers of pairs differ by at most one, if enough pairs are left. `old_pairs` are the
    responses' existing pairs: they are not made again, and count in the balance and in `per_item`.
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
    """Return the new pairs of one item, each pairing the least shown player with the least shown opponent."""
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
        rarest = min(waiting, key=lambda player: (exposure[player], next(iter(waiting[player]))))
        place, candidates = min(
            waiting[rarest].items(), key=lambda item: (sum(exposure[response.player] for response in item[1]), item[0])
        )
        for player in (response.player for response in candidates):
            exposure[player] += 1
            del waiting[player][place]
            if not waiting[player]:
                del waiting[player]
        new_pairs.append(vote_pair(*candidates))
    return new_pairs


def _list_candidates(responses: Sequence[PairedResponse], names: Blinding) -> Iterator[_Candidates]:
    """Yield all possible pairs in the order of a tournament: in turns in which every player plays once."""
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
    """Yield the turns of an all-play-all tournament by the circle method. With an odd number of players, one pauses in each turn."""
    circle: list[PairedResponse | None] = [*seats, *([None] if len(seats) % 2 else [])]
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        for place in range(half):
            left, right = circle[place], circle[-1 - place]
            if left is not None and right is not None:
                yield left, right
        circle = [circle[0], circle[-1], *circle[1:-1]]
