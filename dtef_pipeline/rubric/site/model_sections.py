"""The sections on rubrics of a model's page: its best and worst blueprints and tags compared with others, and its worst criteria."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from dtef_pipeline.rubric.blueprint_run import describe_criterion
from dtef_pipeline.rubric.site.prompt_parts import truncate_model_text
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.rubric.tables import RUBRIC_CELL, RUBRIC_POINT
from dtef_pipeline.site.content import Section, TemplateBlock, convert_to_rows
from dtef_pipeline.site.leads import compare_with_others, leads_section

_MAX_WORST = 5
_WORST_HOW = (
    "Criteria on which its mean point is farthest below that of the other models, with its worst response; the prompt's page has the "
    "judges' reasons. The point is 0-1, higher is better, and reversed for should_not."
)
_CRITERION = ("blueprint", "snapshot", *RUBRIC_POINT)
_RESPONSE = ("blueprint", "snapshot", *RUBRIC_CELL, "draw")


def _match(table: str, other: str, keys: Sequence[str]) -> str:
    """Return the condition of a join in which null matches null."""
    return " AND ".join(f"{table}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in keys)


_WORST_RESPONSES = f"""
    SELECT points.*, worst.others, responses.text AS response, criteria.kind, criteria.text, criteria.fn, criteria.args
    FROM worst JOIN rubric_points AS points ON {_match("points", "worst", ("model", *_CRITERION))}
    LEFT JOIN rubric_responses AS responses ON {_match("responses", "points", _RESPONSE)}
    LEFT JOIN rubric_criteria AS criteria ON {_match("criteria", "points", ("blueprint", *RUBRIC_POINT))}
    WHERE points.score IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY worst.place ORDER BY points.score, {", ".join(f"points.{key}" for key in _RESPONSE)}) = 1
    ORDER BY worst.place"""


def make_model_sections(rows: RubricRows) -> Callable[[str], list[Section]]:
    """Return a function that builds the sections on a model from its name on the leaderboard."""
    blueprints = compare_with_others(rows.scores, ["blueprint"])
    tags = compare_with_others(rows.cut("tag"), ["tag"])
    # A tag with a single blueprint would repeat the blueprint's row.
    tags = tags[tags["tag"].isin([tag for tag, names in rows.blueprints_of_tags.items() if len(names) > 1])]
    worst_items = _read_worst_items(rows)

    def build_sections(name: str) -> list[Section]:
        sections = []
        for part, compared in (("blueprint", blueprints), ("tag", tags)):
            own = compared[compared["model"] == name].sort_values(["lead", part], ascending=[False, True])
            links = [rows.link(value) if part == "blueprint" else rows.tag_links[value] for value in own[part]]
            leads = [{**row, "part": link} for row, link in zip(convert_to_rows(own), links, strict=True)]
            sections.append(leads_section(f"{part}s", f"by {part}", part.capitalize(), leads))
        worst = [TemplateBlock("rubric/worst.html.j2", {"items": items})] if (items := worst_items.get(name)) else []
        sections.append(Section("worst", "criteria on which it is farthest behind other models", worst, "", _WORST_HOW))
        return sections

    return build_sections


def _read_worst_items(rows: RubricRows) -> dict[str, list[dict[str, Any]]]:
    """Return by model the criteria on which it is farthest below the other models, each with its worst response."""
    compared = compare_with_others(rows.cut("criterion"), _CRITERION)
    behind = compared[compared["lead"] < 0].sort_values(["model", "lead", *_CRITERION], kind="stable")
    worst = behind.groupby("model").head(_MAX_WORST)[["model", *_CRITERION, "others"]]
    rows.rows.connection.register("worst", worst.assign(place=range(len(worst))))
    items = defaultdict(list)
    for row in rows.query(_WORST_RESPONSES):
        details = {"words": describe_criterion(row), "response": truncate_model_text(row["response"])}
        prompt = rows.prompts.get((row["blueprint"], row["prompt"]), (0, row["prompt"]))[1]
        link = rows.prompt_link(row["blueprint"], row["prompt"])
        items[row["model"]].append({**row, **details, "link": link, "prompt_words": prompt})
    return items
