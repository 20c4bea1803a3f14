"""Which partitions a run is about: Dagster selects ranges of neighbours alone."""

from collections.abc import Iterator, Sequence

from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.partitions import CHOSEN_TAG


def ranges(known: Sequence[str], wanted: Sequence[str]) -> Iterator[list[str]]:
    """The wanted keys as runs of neighbours in the order of `known`: each can be selected as one range."""
    remaining, group = set(wanted), list[str]()
    for key in known:
        if key in remaining:
            group.append(key)
        elif group:
            yield group
            group = []
    if group:
        yield group


def range_tags(keys: Sequence[str]) -> dict[str, str]:
    """Run tags that select a range of neighbouring partitions."""
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}


def chosen_tags(known: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Run tags that select `keys`, in the order of `known`: the range from the first to the last, and which of it where that has gaps."""
    gaps = len(list(ranges(known, keys))) > 1
    return {**range_tags(keys), **({CHOSEN_TAG: "\n".join(keys)} if gaps else {})}
