"""Which questions are asked together in one prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def batches(kinds: Sequence[str], size: int) -> list[list[int]]:
    """Places of the questions of each batch, each question in one of them.

    `kinds`: of each question, in survey order, a name that it shares with its duplicates; a batch holds no kind twice. Batches are of
    consecutive questions and of nearly equal lengths up to `size`; of an odd number in pairs the first three are together, so that none
    is alone. Duplicates of each other move to the nearest batches with room.
    """
    lengths = _lengths(len(kinds), size, max(Counter(kinds).values(), default=0))
    home = [batch for batch, length in enumerate(lengths) for _ in range(length)]
    made: list[list[int]] = [[] for _ in lengths]
    repeated = {kind for kind, count in Counter(kinds).items() if count > 1}
    # Those that cannot go anywhere choose first.
    for place in sorted(range(len(kinds)), key=lambda place: (kinds[place] not in repeated, place)):
        free = [
            batch
            for batch, length in enumerate(lengths)
            if len(made[batch]) < length and all(kinds[other] != kinds[place] for other in made[batch])
        ]
        if free:
            nearest = min(free, key=lambda batch: (abs(batch - home[place]), batch))
            made[nearest if kinds[place] in repeated else free[0]].append(place)
        else:
            made.append([place])
    return sorted(sorted(batch) for batch in made if batch)


def _lengths(questions: int, size: int, most_repeated: int) -> list[int]:
    """Lengths of the batches: as few as `size` allows, none of one question if that can be, and as many as there are duplicates."""
    count = max(min(-(-questions // size), max(questions // 2, 1)), most_repeated)
    shortest, longer = divmod(questions, count) if count else (0, 0)
    return [shortest + (batch < longer) for batch in range(count)]
