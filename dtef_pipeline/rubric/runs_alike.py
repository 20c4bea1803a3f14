"""Whether the runs that a board averages were made alike: scored by one policy, judged on one scale and by the same judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pandas as pd

from dtef_pipeline.rubric.board import latest_runs
from dtef_pipeline.text.counted import counted

_MARKED_SCALE = re.compile(r"\[scale:(\d+)\]\Z")
_HOW_ON_ONE_SCALE = "`dtef rubric run --from judge` judges all of them on the `scale` of the panel file"
_HOW_BY_THE_SAME = "`dtef rubric run --from judge --judge APPROACH=MODEL` has all of them judged by the same"


def averaged_runs(scores: pd.DataFrame, runs: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """The rows of `runs` that are the latest of their blueprint; `scores` and `order` as of `latest_runs`."""
    latest = latest_runs(scores, order).astype("str")
    return latest.merge(runs.astype({"blueprint": "str", "snapshot": "str"}), on=["blueprint", "snapshot"])


def unlike_runs(runs: pd.DataFrame) -> Iterator[str]:
    """A sentence for each way in which the runs differ. `runs`: one row per blueprint, with `judges` (names), `judge_hash` and `policy`.

    Blueprints that no judge decides anything of, whose judges are none, differ from nobody by them.
    """
    yield from several_policies(runs["policy"])
    names = pd.Series([list(judges) if judges is not None else [] for judges in runs["judges"]], dtype=object)
    known = pd.DataFrame({"names": names, "hash": runs["judge_hash"].tolist()})
    known = known[known["names"].map(len) > 0]
    scale = known["names"].map(_scale)
    if len(scale.unique()) > 1:
        told = _groups(scale.map("{} classes".format))
        yield f"blueprints were judged on several scales, whose numbers cannot be compared: {told}; {_HOW_ON_ONE_SCALE}"
    name = known["names"].map(lambda own: ", ".join(_MARKED_SCALE.sub("", judge) for judge in own))
    same = known.groupby([scale.rename("scale"), name.rename("name")])["hash"].transform("nunique") == 1
    name = name.where(same, name + " with judge_hash " + known["hash"].str[:8])
    if len(name.unique()) > 1:
        yield f"blueprints were judged by other judges: {_groups(name)}; {_HOW_BY_THE_SAME}"


def several_policies(policies: pd.Series) -> Iterator[str]:
    if len(policies.unique()) > 1:
        yield f"blueprints were scored by several policies: {_groups(policies)}; `dtef rubric run --from judge` scores all of them by one"


def _scale(judges: Sequence[str]) -> int:
    """How many classes the judges of a run, who have one scale, chose from."""
    return next((int(found[1]) for name in judges if (found := _MARKED_SCALE.search(name))), 5)


def _groups(names: pd.Series) -> str:
    """`ten (2 blueprints); five (1 blueprint)`, the most frequent first."""
    return "; ".join(f"{name} ({counted(int(n), 'blueprint')})" for name, n in names.value_counts().items())
