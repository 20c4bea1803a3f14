"""The pages on data and on method: requests, exclusions, costs, and how numbers are computed and read.

An unknown cost is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Column, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import DATA_PAGE, METHOD_PAGE
from dtef_pipeline.text.number_words import format_count

_SUMMED_COLUMNS = ["answered", "failed", "calls", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced"]
COST_COLUMNS = (
    Column("calls", "Requests", "count"),
    Column("prompt_tokens", "Prompt tokens", "count", more=True),
    Column("completion_tokens", "Completion tokens", "count", more=True),
    Column("cost_usd", "Cost", "dollars"),
    Column("per_thousand", "Per 1,000 responses", "dollars", "What a thousand more of such responses would cost"),
    Column("unpriced", "Responses of unknown price", "count"),
)
"""Of the rows of `sum_costs`."""
_CALL_COLUMNS = (
    Column("model", "Model", "model"),
    Column("role", "Role"),
    Column("first_level", "Of"),
    Column("snapshot", "Snapshot", "code"),
    Column("answered", "Answered", "count", always=True),
    Column("failed", "Failed", "count"),
    *COST_COLUMNS,
)
_METHOD = (
    "Intervals are 95% intervals. Scores of items that share a cluster, such as one topic or one deal, count as one observation, because "
    "they are not independent.",
    "Two models are compared on the items on which both have a score. The adjusted p decides the verdict: Holm's correction covers the "
    "comparisons with other models and those with baselines separately, so the same difference can have two verdicts. “No clear difference” "
    "means that the data do not decide.",
    "Only models are ranked. Baselines are computed without asking a model; baselines and ceilings help to read the scores.",
    "A rank range gives the best and the worst rank that the comparisons allow.",
    "The site shows no mean over families, because their scores have different units.",
)


def data_page(contents: SiteContents) -> Page:
    """Build the page of each family's requests, quarantine and exposure, and every cost."""
    sections: list[Section] = []
    for family in contents.families:
        sums = sum_costs(contents.table("costs", family), ["model", "role", "first_level", "snapshot"])
        rows = [{**row, "first_level": family.part_title(str(row["first_level"]))} for row in sums]
        table = Table("What models were asked, and what it cost", _CALL_COLUMNS, rows, first=20)
        sections += map(family.name_section, [*family.content.data, Section("asked", "requests and costs", [table])])
    costs = contents.costs()
    n_answered = int(costs["answered"].sum()) if len(costs) else 0
    return Page(DATA_PAGE, "Data", f"These pages rest on {format_count(n_answered, 'response')} of models.", sections)


def build_method_page(contents: SiteContents) -> Page:
    """Build the page on reading the numbers."""
    sections = [Section(family.name, family.site.title, [Prose(family.content.method)]) for family in contents.families]
    answer = f"How the numbers of {format_count(len(sections), 'family')} are made and how to read them."
    return Page(METHOD_PAGE, "Method", answer, [Section("method", "All families", [Prose(_METHOD)]), *sections])


def sum_costs(costs: pd.DataFrame, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Sum the table `costs` for each combination of the columns `columns`, with the cost of a thousand responses."""
    if not len(costs):
        return []
    sums = costs.groupby(list(columns), dropna=False, sort=False)[_SUMMED_COLUMNS].sum(min_count=1).reset_index()
    n_priced = sums["answered"] - sums["unpriced"].fillna(0)
    return convert_to_rows(sums.assign(per_thousand=(1000 * sums["cost_usd"] / n_priced).where(n_priced > 0)))


def describe_costs(costs: pd.DataFrame) -> str:
    """Return a summary: `$1.25 for 480 requests; 12 responses of unknown price.`"""
    if not len(costs):
        return ""
    requests, n_unpriced = format_count(int(costs["calls"].sum()), "request"), int(costs["unpriced"].sum())
    if costs["cost_usd"].isna().all():
        return f"The cost of {requests} is not known."
    note = f"; {format_count(n_unpriced, 'response')} of unknown price" if n_unpriced else ""
    return f"{show(float(costs['cost_usd'].sum()), 'dollars')} for {requests}{note}."
