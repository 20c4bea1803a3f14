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
    """Run tags that select `keys`, given in any order: the range from the first to the last of `known`, and which of it where that has gaps."""
    groups = list(ranges(known, keys))
    ordered = [key for group in groups for key in group]
    return {**range_tags(ordered), **({CHOSEN_TAG: "\n".join(ordered)} if len(groups) > 1 else {})}
