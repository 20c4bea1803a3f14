"""Pages of blueprints and tags: the best models, prompts against models, each prompt with criteria and responses, runs over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.blueprint_run import BlueprintRun, read_run
from dtef_pipeline.rubric.scoring import parse_policy
from dtef_pipeline.rubric.site.prompt_parts import POINT_ENDS, build_prompt_data, build_prompt_part, mean_of_prompt
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, build_ranked_board, describe_best_model, judge_words
from dtef_pipeline.rubric.site.run_history import build_history_section
from dtef_pipeline.site.content import Block, Column, DataFile, Link, Page, Section, Table
from dtef_pipeline.site.leaderboard import board_block
from dtef_pipeline.site.matrix import Cell, MatrixRow, matrix
from dtef_pipeline.site.paths import board_page
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line

MAX_TEXT_CHARACTERS = 12_500_000
"""Characters of responses and reasons on the whole site; of more a sample of prompts has them."""
SHOWN_SEED = 40
_PROMPT_HEADING, _WORDS_ON_TOP = 80, 24
"""Characters of a prompt in the matrix, and words of the description on top."""
_CRUMB = Link("Rubrics", board_page("rubric"))
_TEXT_SIZE = """
    SELECT coalesce(sum(size), 0) AS size FROM (
        SELECT blueprint, snapshot, sum(length(text)) AS size FROM rubric_responses GROUP BY ALL UNION ALL
        SELECT blueprint, snapshot, sum(length(reflection)) FROM rubric_judgements GROUP BY ALL
    ) SEMI JOIN shown_runs USING (blueprint, snapshot)"""
_PROMPTS_HOW = (
    "A cell is the mean point of a model on a criterion, 0-1, higher is better: the mean over judges, reversed for should_not. Open a "
    "prompt to compare responses, with each judge's class and reason."
)
_SUMMARY_HOW = (
    "Written by a language model that did not see the names of models and makers. It is an opinion; no score depends on it."
)
_LIST_COLUMNS = (
    Column("blueprint", "Blueprint", "long"),
    Column("tags", "Tags"),
    Column("n_models", "Models", "count", "Models with a score", always=True),
    Column("mean", "Mean", "score", "Mean score of its models, 0-1"),
    Column("best", "Best", "model"),
)
_SUMMARY_COLUMNS = (
    Column("text", "Findings of the analyst", "long"),
    Column("kind", "Kind", always=True),
    Column("analyst", "Analyst"),
)
_FACT_COLUMNS = (Column("fact", "Fact"), Column("value", "Value", "long"))


def build_blueprint_list(rows: RubricRows, blueprints: Sequence[str]) -> Section:
    """List blueprints, with links to their pages and those of their tags."""
    list_rows: list[dict[str, Any]] = []
    for name in blueprints:
        models = rows.scores[(rows.scores["blueprint"] == name) & rows.scores["score"].notna()]
        tags = [rows.tag_links[str(tag)] for tag in rows.about[name]["tags"] or ()]
        details = {"n_models": len(models), "mean": models["score"].mean(), "best": next(iter(models["model"]), None)}
        list_rows.append({"blueprint": rows.link(name), "tags": tags, **details})
    scored_rows = [row for row in list_rows if row["n_models"]]
    answer = f"{format_count(len(list_rows), 'blueprint')}, {len(scored_rows)} with scores."
    if len(scored_rows) > 1:
        hardest, easiest = (choose(scored_rows, key=lambda row: row["mean"]) for choose in (min, max))
        answer += f" Hardest is {hardest['blueprint'].text} ({hardest['mean']:.2f}), "
        answer += f"easiest {easiest['blueprint'].text} ({easiest['mean']:.2f})."
    table = Table("Blueprints, by the run that their pages show", _LIST_COLUMNS, list_rows, search=True)
    return Section("blueprints", "Blueprints", [table], answer)


def tag_pages(rows: RubricRows) -> Iterator[Page]:
    """Yield the page of each tag: its leaderboard and its blueprints."""
    for tag, link in rows.tag_links.items():
        board = build_ranked_board(f"Mean score over the blueprints tagged {tag}", rows.cut("tag", tag=tag), "Blueprints")
        blueprints = build_blueprint_list(rows, rows.blueprints_of_tags[tag])
        sections = [Section("board", "Leaderboard", [board_block(board)]), blueprints]
        yield Page(link.href, f"Tag: {tag}", describe_best_model(board), sections, crumbs=[_CRUMB])


def blueprint_pages(rows: RubricRows) -> Iterator[Page | DataFile]:
    """Yield the page of each blueprint, and the data of its prompts."""
    share = min(1.0, MAX_TEXT_CHARACTERS / max(1, rows.query(_TEXT_SIZE)[0]["size"]))
    for blueprint in rows.about:
        run = read_run(rows.shown, blueprint, rows.runs.get(blueprint))
        prompts = sorted(run.positions, key=lambda prompt: digest("shown", SHOWN_SEED, run.id, prompt))
        data = {
            prompt: build_prompt_data(run, prompt, f"rubric/data/{rows.files[run.id]}/{run.positions[prompt]}.js")
            for prompt in prompts[: math.ceil(share * len(prompts))]
            if run.responses.list_rows_of_prompt(prompt)
        }
        yield _build_page(rows, run, data)
        yield from data.values()


def _build_page(rows: RubricRows, run: BlueprintRun, data: Mapping[str, DataFile]) -> Page:
    """Build a page. `data`: responses by prompt, of all prompts with any, or of a sample, in random order."""
    scores = rows.scores[rows.scores["blueprint"] == run.id]
    board = build_ranked_board("Mean score over prompts, 0-1, higher is better", scores, "Prompts scored")
    means = {prompt: score for prompt in run.positions if (score := mean_of_prompt(run, prompt)) is not None}
    answer = describe_best_model(board) if run.snapshot is not None else "Not run yet."
    if len(means) > 1:
        hardest = min(means, key=lambda prompt: means[prompt])
        answer += (
            f" The hardest of {len(run.prompts)} prompts is number {run.positions[hardest]}: {means[hardest]:.2f} on average."
        )
    words = str(run.header["description"] or "").split()
    title, path = rows.link(run.id)
    sections = [
        Section("scores", "Models", [board_block(board)]),
        _build_summary_section(rows, run),
        _build_prompts_section(rows, run, data),
        build_history_section(rows, run),
        _build_about_section(rows, run),
    ]
    introduction = " ".join(words[:_WORDS_ON_TOP]) + ("…" if len(words) > _WORDS_ON_TOP else "")
    return Page(path, title, answer, sections, crumbs=[_CRUMB], introduction=introduction, scripts=("rubric.js",))


def _build_prompts_section(rows: RubricRows, run: BlueprintRun, data: Mapping[str, DataFile]) -> Section:
    # Without scripts the responses to one prompt can be read.
    sample = next(iter(data), "")
    parts = [
        build_prompt_part(rows, run, prompt, data.get(prompt["prompt"]), prompt["prompt"] == sample) for prompt in run.prompts
    ]
    answer = f"{format_count(len(run.prompts), 'prompt')} with {format_count(len(run.models), 'model')}."
    if len(data) < sum(part.values["n_responses"] > 0 for part in parts):
        answer += f" Responses to {len(data)} of them are shown, drawn with seed {SHOWN_SEED}."
    lines = []
    for name, number in run.positions.items():
        heading = f"{number}. {shorten_to_line(rows.prompts[run.id, name][1], _PROMPT_HEADING)}"
        cells = [Cell(means["hybrid"]) if (means := run.model_means.get((name, model))) else None for model in run.models]
        lines.append(MatrixRow(rows.prompt_link(run.id, name, heading), cells))
    blocks: list[Block] = [*parts]
    if run.model_means and len(lines) > 1:
        caption = "Score of each model on each prompt"
        blocks.insert(0, matrix(caption, "Prompt", run.models, lines, POINT_ENDS, head_kind="model"))
    return Section("prompts", "Prompts", blocks, answer, _PROMPTS_HOW)


def _build_summary_section(rows: RubricRows, run: BlueprintRun) -> Section:
    """Show the findings of analysts."""
    where = {"blueprint": run.id, "snapshot": run.snapshot}
    summaries = rows.shown.rows("rubric_summaries", ("analyst", "findings", "share"), where, ("analyst",))
    findings = [
        {"kind": finding["kind"].replace("_", " "), "text": finding["text"], "analyst": row["analyst"]}
        for row in summaries
        for finding in row["findings"] or ()
    ]
    if not findings:
        return Section("summary", "Executive summary", [])
    analysts = ", ".join(dict.fromkeys(finding["analyst"] for finding in findings))
    share = min(row["share"] or 1 for row in summaries)
    part = f" The analyst saw {share:.0%} of each text." if share < 1 else ""
    answer = f"{format_count(len(findings), 'finding')} by {analysts}.{part}"
    table = Table("Findings of the analyst", _SUMMARY_COLUMNS, findings, first=12)
    return Section("summary", "Executive summary", [table], answer, _SUMMARY_HOW)


def _build_about_section(rows: RubricRows, run: BlueprintRun) -> Section:
    description = str(run.header["description"] or "")
    facts: dict[str, Any] = {
        "Description": description if len(description.split()) > _WORDS_ON_TOP else "",
        "Tags": [rows.tag_links[str(tag)] for tag in run.header["tags"] or ()],
        "Id": run.id,
        "References": "\n".join(run.header["references"] or ()),
        "Run": run.snapshot,
        "Judges": "\n".join(map(judge_words, run.run["judges"] or ())),
        "Scoring": _format_policy(run.run["policy"]),
    }
    items = [{"fact": name, "value": value} for name, value in facts.items() if value]
    return Section("about", "About this blueprint", [Table("The blueprint and its run", _FACT_COLUMNS, items)])


def _format_policy(value: str | None) -> str:
    """Format a stored scoring policy in words; as stored if other code wrote it."""
    try:
        policy = parse_policy(value or "")
    except ConfigError:
        return value or ""
    return (
        f"{100 * policy.beta:g} % similarity, {100 * (1 - policy.beta):g} % coverage; alternatives: {policy.or_paths}; "
        f"criteria that should not be met: {policy.should_not_paths}; embedder: {policy.embedder}"
    )
