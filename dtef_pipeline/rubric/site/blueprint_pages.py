"""A page per blueprint: the best models, prompts against models, each prompt with criteria and responses, runs over time, judges, the file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.rubric.aggregate import MODEL_LEVEL
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.results.blueprint_run import BlueprintRun, describe_criterion, iterate_counts, mean, read_run
from dtef_pipeline.rubric.score_rows import parse_policy
from dtef_pipeline.rubric.site.blueprint_lists import RUBRIC_CRUMB
from dtef_pipeline.rubric.site.judges import AGREEMENT_HOW, FINDING_COLUMNS, format_agreement
from dtef_pipeline.rubric.site.prompt_parts import POINT_ENDS, build_prompt_data, build_prompt_part, truncate_model_text
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, build_ranked_board, describe_best_model, judge_words
from dtef_pipeline.site.content import (
    Block,
    Chart,
    Column,
    DataFile,
    Fold,
    Link,
    Page,
    Prose,
    Section,
    Table,
    TemplateBlock,
    convert_to_rows,
    is_unknown,
)
from dtef_pipeline.site.family_content import RankedBoard
from dtef_pipeline.site.leaderboard import board_block
from dtef_pipeline.site.matrix import Cell, MatrixRow, matrix
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line

MOST_RUNS, _MAX_DRAWN = 12, 4
_MAX_APART, _MAX_PROMPTS, _MAX_CRITERIA = 3, 2, 5
_RUNS_HOW = (
    "Each run repeated the same blueprint. Runs are comparable if test, judges and policy are the same; “other test” marks the others. "
    "The sections below show the models whose mean changed most between two such runs, on the prompts that changed most."
)


def build_history_section(rows: RubricRows, run: BlueprintRun) -> Section:
    """Build the section; empty with fewer than two runs."""
    scores = rows.scores[rows.scores["blueprint"] == run.id] if len(rows.scores) else rows.scores
    grid = (
        scores.pivot_table(index="model", columns="snapshot", values="hybrid", aggfunc="mean")
        if len(scores)
        else pd.DataFrame()
    )
    if len(grid.columns) < 2:
        return Section("runs", "Runs over time", [])
    snapshots = among(rows.order, grid.columns)[-MOST_RUNS:]
    grid = grid[snapshots]
    run_rows = rows.rows.rows("rubric_runs", ("snapshot", "run_hash"), {"blueprint": run.id})
    hashes = {str(row["snapshot"]): str(row["run_hash"]) for row in run_rows}
    change = (grid[snapshots[-1]] - grid[snapshots[-2]]).dropna()
    answer = f"{format_count(len(snapshots), 'run')}. "
    if len(change):
        model = str(change.abs().idxmax())
        answer += (
            f"Since the previous run, {model} changed most: {change[model]:+.3f}; all models {change.mean():+.3f} on average."
        )
    blocks: list[Block] = [
        _build_chart(grid, hashes, hashes.get(snapshots[-1])),
        _build_table(grid),
        *_build_two_run_blocks(rows, run),
    ]
    return Section("runs", "Runs over time", blocks, answer, _RUNS_HOW)


def _build_chart(grid: pd.DataFrame, hashes: dict[str, str], latest: str | None) -> Chart:
    """Chart the mean of all models, and those that changed most."""
    movers = (grid.max(axis=1) - grid.min(axis=1)).sort_values(ascending=False, kind="stable").index[:_MAX_DRAWN]
    lines = {"mean of all models": grid.mean(), **{str(model): grid.loc[model] for model in sorted(movers)}}
    points = [
        {"at": f"{snapshot}{'' if hashes.get(snapshot) == latest else ', other test'}", "value": float(value), "label": label}
        for label, line in lines.items()
        for snapshot, value in line.items()
        if not is_unknown(value)
    ]
    return Chart(
        "series", points, f"Mean score by run: all models, and the {format_count(len(movers), 'model')} that changed most"
    )


def _build_table(grid: pd.DataFrame) -> Fold:
    last = grid.columns[-3:]
    columns = [Column("model", "Model", "model"), Column("change", "Last change", "signed")]
    columns += [Column(f"run {name}", name, "score", more=name not in last) for name in grid.columns]
    table_rows = [
        {
            "model": str(model),
            "change": line.iloc[-1] - line.iloc[-2],
            **{f"run {name}": value for name, value in line.items()},
        }
        for model, line in grid.iterrows()
    ]
    return Fold("Scores of all models in each run", [Table("Mean score by run", columns, table_rows)])


def _build_two_run_blocks(rows: RubricRows, run: BlueprintRun) -> Iterator[Block]:
    """Yield two runs, prompt by prompt, of the models that moved most."""
    drifts = rows.rows.frame("drift_rule", {"family": "rubric", "partition": run.id})
    if not len(drifts):
        return
    shifts = drifts[drifts["gap"].gt(0) & drifts["lowest_snapshot"].notna() & drifts["highest_snapshot"].notna()]
    sorted_rows = shifts.sort_values(["flagged", "gap", "model_variant"], ascending=[False, False, True])
    for row in convert_to_rows(sorted_rows.head(_MAX_APART)):
        prompts = list(_find_moved_prompts(rows, run, row))
        flag = ", flagged by the documented rule" if row["flagged"] else ""
        title = (
            f"{row['model']}: lowest run {row['lowest_snapshot']} ({row['lowest']:.3f}), "
            f"highest run {row['highest_snapshot']} ({row['highest']:.3f}){flag}"
        )
        if prompts:
            part = TemplateBlock(
                "rubric/two_runs.html.j2", {"prompts": prompts, "sides": [row["lowest_snapshot"], row["highest_snapshot"]]}
            )
            yield Fold(title, [part], is_open=bool(row["flagged"]))


def _find_moved_prompts(rows: RubricRows, run: BlueprintRun, drift: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    """Yield the prompts on which a variant moves most between two runs, with both responses and changed criteria."""
    sides = [drift["lowest_snapshot"], drift["highest_snapshot"]]
    where = {"blueprint": run.id, "model_variant": drift["model_variant"]}
    cells = rows.rows.frame("rubric_scores", {**where, "level": "cell"})
    grid = (
        cells.pivot_table(index="prompt", columns="snapshot", values="hybrid", aggfunc="mean").reindex(columns=sides).dropna()
    )
    for prompt in rank_by_change(grid, sides)[:_MAX_PROMPTS]:
        texts = _read_texts(rows, {**where, "prompt": prompt})
        number, words = rows.prompts.get((run.id, prompt), (0, prompt))
        yield {
            "words": f"{number}. {words}" if number else words,
            "runs": [{"snapshot": side, "score": grid.loc[prompt, side], "text": texts.get(side, "")} for side in sides],
            "criteria": _find_moved_criteria(rows, run, {**where, "prompt": prompt}, sides),
        }


def rank_by_change(scores: pd.DataFrame, sides: Sequence[str]) -> list[str]:
    """Return the prompts (index) by the size of the change between two runs (columns), up or down, the largest first."""
    changes = (scores[sides[1]] - scores[sides[0]]).abs()
    return [str(prompt) for prompt in changes.sort_values(ascending=False, kind="stable").index]


def _read_texts(rows: RubricRows, where: dict[str, Any]) -> dict[str, str]:
    """Return the first response of each snapshot."""
    responses = rows.rows.rows("rubric_responses", ("snapshot", "text"), where, ("system_index", "draw"))
    return {str(row["snapshot"]): truncate_model_text(row["text"]) for row in reversed(responses)}


def _find_moved_criteria(rows: RubricRows, run: BlueprintRun, where: dict[str, Any], sides: list[str]) -> list[dict[str, Any]]:
    """Return the criteria whose mean points differ most between two runs."""
    keys = ["block", "path", "position"]
    points = rows.rows.frame("rubric_points", where)
    if not len(points):
        return []
    # A required criterion has no path; in a pivot null is no key.
    frame = points.assign(path=points["path"].astype("float64").fillna(-1))
    grid = frame.pivot_table(index=keys, columns="snapshot", values="score", aggfunc="mean").reindex(columns=sides).dropna()
    scores = dict(zip(map(tuple, grid.index), grid.to_numpy().tolist(), strict=True))
    criteria = [
        {"words": describe_criterion(row), "scores": pair, "is_unwanted": row["block"] == SHOULD_NOT}
        for row in run.criteria.list_rows_of_prompt(where["prompt"])
        if (pair := scores.get((row["block"], -1 if row["path"] is None else row["path"], row["position"])))
        and pair[0] != pair[1]
    ]
    return sorted(criteria, key=lambda criterion: -abs(criterion["scores"][1] - criterion["scores"][0]))[:_MAX_CRITERIA]


MAX_TEXT_CHARACTERS = 12_500_000
"""Characters of responses and reasons on the whole site; of more a sample of prompts has them."""
SHOWN_SEED = 40
_OPEN_UP_TO, _PROMPT_HEADING, _WORDS_ON_TOP = 2, 80, 24
"""Prompts that a page shows open, characters of a prompt in the matrix, and words of the description on top."""
_PROMPTS_HOW = (
    "A cell is the mean point of a model on a criterion, 0-1, higher is better: the mean over judges, reversed for should_not. Open a "
    "prompt to compare responses, with each judge's class and reason."
)
_SUMMARY_HOW = (
    "Written by a language model that did not see the names of models and makers. It is an opinion; no score depends on it."
)
_SUMMARY_KINDS = {
    "key_finding": "Key finding",
    "strength": "Strength",
    "weakness": "Weakness",
    "pattern": "Pattern",
    "topic": "Topic",
}
_SUMMARY_COLUMNS = (
    Column("text", "Findings of the analyst", "long"),
    Column("kind", "Kind", always=True),
    Column("analyst", "Analyst"),
)
_DISPUTED_COLUMNS = (
    Column("text", "Criterion", "long"),
    Column("prompt", "Prompt"),
    Column("mean_sd", "Spread", "number", "Mean standard deviation of the judges of one response, 0-0.5"),
    Column("n_responses", "Responses", "count", more=True),
)
_FACT_COLUMNS = (Column("fact", "Fact"), Column("value", "Value", "long"))


def blueprint_pages(rows: RubricRows) -> Iterator[Page | DataFile]:
    """Yield the page of each blueprint, and the data of its prompts."""
    share, latest_rows = _compute_shown_share(rows), LatestRunRows(rows.rows.connection, rows.runs)
    for blueprint in rows.about:
        run = read_run(latest_rows, blueprint, rows.runs.get(blueprint))
        paths = _choose_data_paths(rows, run, share)
        prompts = [prompt for prompt in run.prompts if run.responses.list_rows_of_prompt(prompt["prompt"])]
        data = {row["prompt"]: build_prompt_data(run, row, paths[row["prompt"]]) for row in prompts if row["prompt"] in paths}
        yield _build_page(rows, run, data, len(prompts))
        yield from data.values()


def _compute_shown_share(rows: RubricRows) -> float:
    """Return the share of each blueprint's prompts whose texts fit on the site."""
    total = 0.0
    for table, column in (("rubric_responses", "text"), ("rubric_judgements", "reflection")):
        if {"blueprint", "snapshot", column} <= rows.rows.columns(table):
            query = f"(SELECT blueprint, snapshot, sum(length({column}))::DOUBLE AS size FROM {table} GROUP BY ALL)"
            sizes = rows.rows.rows(query, ("blueprint", "snapshot", "size"), {})
            total += math.fsum(row["size"] or 0 for row in sizes if rows.runs.get(row["blueprint"]) == row["snapshot"])
    return min(1.0, MAX_TEXT_CHARACTERS / total) if total else 1.0


def _choose_data_paths(rows: RubricRows, run: BlueprintRun, share: float) -> dict[str, str]:
    """Return the data path of each prompt whose responses are shown: all prompts, or a sample by SHOWN_SEED."""
    prompts = sorted((row["prompt"] for row in run.prompts), key=lambda prompt: digest("shown", SHOWN_SEED, run.id, prompt))
    sample = prompts[: math.ceil(share * len(prompts))]
    return {prompt: f"rubric/data/{rows.files[run.id]}/{run.positions[prompt]}.js" for prompt in sample}


def _build_page(rows: RubricRows, run: BlueprintRun, data: Mapping[str, DataFile], n_answered: int) -> Page:
    """Build a page. `data`: responses by prompt, of all `n_answered` prompts with any, or of a sample."""
    ranked = _rank_models(rows, run)
    sections = [
        Section("scores", "Models", [board_block(ranked), *_build_unscored_block(run)]),
        _build_summary_section(rows, run),
        _build_prompts_section(rows, run, data, n_answered),
        build_history_section(rows, run),
        _build_judges_section(rows, run),
        _build_findings_section(run),
        _build_about_section(rows, run),
    ]
    return Page(
        rows.page(run.id),
        rows.title(run.id),
        f"{describe_best_model(ranked)}{_describe_hardest(run)}" if run.snapshot is not None else "Not run yet.",
        sections,
        introduction=_extract_introduction(run.header["description"]),
        crumbs=[RUBRIC_CRUMB],
        scripts=("rubric.js",),
    )


def _extract_introduction(description: Any) -> str:
    words = str(description or "").split()
    return " ".join(words[:_WORDS_ON_TOP]) + ("…" if len(words) > _WORDS_ON_TOP else "")


def _rank_models(rows: RubricRows, run: BlueprintRun) -> RankedBoard:
    """Return the models of the run, the best first, with ranks and intervals if there is a board."""
    board_rows = rows.select_part_rows("blueprint", run.id)
    entries = {row["model"]: row for row in convert_to_rows(board_rows[board_rows["snapshot"] == run.snapshot])}
    scores = {row["model"]: {**row, "score": row["hybrid"]} for row in run.list_scores_at(MODEL_LEVEL)}
    model_rows = [entries.get(model) or scores[model] for model in run.models]
    return build_ranked_board("Mean score over prompts, 0-1, higher is better", model_rows, "Prompts scored")


def _describe_hardest(run: BlueprintRun) -> str:
    means = [
        (score, run.positions[row["prompt"]])
        for row in run.prompts
        if (score := mean(run.model_means.get((row["prompt"], model), {}).get("hybrid") for model in run.models)) is not None
    ]
    if len(means) < 2:
        return ""
    score, number = min(means)
    return f" The hardest of {len(run.prompts)} prompts is number {number}: {score:.2f} on average."


def _build_unscored_block(run: BlueprintRun) -> list[Block]:
    rows = [
        {"model": row["model"], "n": row["n_responses"] - row["n_responses_scored"], "why": reasons}
        for row in run.list_scores_at(MODEL_LEVEL)
        if (reasons := "; ".join(f"{reason} ({count:,})" for reason, count in iterate_counts(row["reasons"])))
    ]
    columns = (
        Column("model", "Model", "model"),
        Column("n", "Unscored responses", "count", always=True),
        Column("why", "Why", "long"),
    )
    return [Fold("Responses without a score", [Table("Responses without a score", columns, rows)])]


def _build_prompts_section(rows: RubricRows, run: BlueprintRun, data: Mapping[str, DataFile], n_answered: int) -> Section:
    is_open = len(run.prompts) <= _OPEN_UP_TO
    # Without scripts the responses to one prompt can be read.
    sample = min(data, key=lambda prompt: digest("without scripts", run.id, prompt), default="")
    parts = [
        build_prompt_part(rows, run, prompt, data.get(prompt["prompt"]), is_open, prompt["prompt"] == sample)
        for prompt in run.prompts
    ]
    answer = f"{format_count(len(run.prompts), 'prompt')} with {format_count(len(run.models), 'model')}."
    if len(data) < n_answered:
        answer += f" Responses to {len(data)} of them are shown, drawn with seed {SHOWN_SEED}."
    return Section("prompts", "Prompts", [*_build_prompt_matrix(rows, run), *parts], answer, _PROMPTS_HOW)


def _build_prompt_matrix(rows: RubricRows, run: BlueprintRun) -> Iterator[TemplateBlock]:
    if not run.model_means or len(run.prompts) < 2:
        return
    lines = []
    for prompt in run.prompts:
        name = prompt["prompt"]
        number, words = rows.prompts.get((run.id, name), (run.positions[name], name))
        cells = [Cell(one["hybrid"]) if (one := run.model_means.get((name, model))) else None for model in run.models]
        lines.append(
            MatrixRow(
                Link(f"{number}. {shorten_to_line(words, _PROMPT_HEADING)}", rows.build_prompt_address(run.id, name)), cells
            )
        )
    yield matrix("Score of each model on each prompt", "Prompt", run.models, lines, POINT_ENDS, head_kind="model")


def _build_summary_section(rows: RubricRows, run: BlueprintRun) -> Section:
    where = {"blueprint": run.id, "snapshot": run.snapshot}
    summaries = rows.rows.rows("rubric_summaries", ("analyst", "status", "findings", "share"), where)
    findings = [
        {"kind": _SUMMARY_KINDS.get(str(item["kind"]), str(item["kind"])), "text": item["text"], "analyst": row["analyst"]}
        for row in summaries
        if not is_unknown(row["analyst"])
        for item in row["findings"] or ()
    ]
    shares = [row["share"] for row in summaries if not is_unknown(row["share"])]
    part = f" The analyst saw {min(shares):.0%} of each text." if shares and min(shares) < 1 else ""
    answer = (
        f"{format_count(len(findings), 'finding')} by {', '.join(sorted({str(row['analyst']) for row in findings}))}.{part}"
        if findings
        else ""
    )
    blocks: list[Block] = [
        Table("Findings of the analyst", _SUMMARY_COLUMNS, findings, first=12),
        *_build_grades_blocks(rows, run),
    ]
    return Section("summary", "Executive summary", blocks, answer, _SUMMARY_HOW if answer else "")


def _build_grades_blocks(rows: RubricRows, run: BlueprintRun) -> Iterator[Block]:
    """Yield a matrix of dimensions against models with the mean grade over analysts."""
    where = {"blueprint": run.id, "snapshot": run.snapshot}
    grades = pd.DataFrame(rows.rows.rows("rubric_grades", ("model", "dimension", "grade"), where))
    if not len(grades):
        return
    grades["model"] = [run.models_by_name.get(name, name) for name in grades["model"]]
    means = grades.groupby(["dimension", "model"])["grade"].mean()
    models = [model for model in run.models if model in set(grades["model"])]
    lines = [
        MatrixRow(str(dimension), [Cell(means.get((dimension, model))) for model in models])
        for dimension in dict.fromkeys(grades["dimension"])
    ]
    yield Fold(
        "Grades from 1 to 10",
        [matrix("Mean grade", "Dimension", models, lines, ("1: worst", "10: best"), (1.0, 10.0), head_kind="model")],
    )


def _build_judges_section(rows: RubricRows, run: BlueprintRun) -> Section:
    agreement = rows.rows.frame("rubric_agreement", {"cut": "blueprint", "value": run.id})
    answer = " ".join(f"{format_agreement(row)}." for row in convert_to_rows(agreement) if not is_unknown(row["alpha"]))
    disputes = rows.rows.frame("rubric_disagreed", {"blueprint": run.id})
    items = [
        {**row, "prompt": Link(f"Prompt {run.positions[row['prompt']]}", rows.build_prompt_address(run.id, row["prompt"]))}
        for row in convert_to_rows(disputes)
        if row["prompt"] in run.positions
    ]
    table = Table("Criteria on which judges differ", _DISPUTED_COLUMNS, sorted(items, key=lambda row: -row["mean_sd"]), first=8)
    return Section("judges", "Do judges agree?", [table], answer, AGREEMENT_HOW if answer else "")


def _build_findings_section(run: BlueprintRun) -> Section:
    answer = f"{format_count(len(run.findings), 'finding')} in the file." if run.findings else ""
    return Section(
        "findings", "Findings in the file", [Table("Findings in the file", FINDING_COLUMNS, run.findings, first=10)], answer
    )


def _build_about_section(rows: RubricRows, run: BlueprintRun) -> Section:
    details, run_row = run.header, run.run
    facts: dict[str, Any] = {
        "Tags": [rows.tag_link(str(tag)) for tag in rows.about[run.id]["tags"] or ()],
        "Id": run.id,
        "File": Path(str(details["path"] or "")).name,
        "References": "\n".join(str(reference) for reference in details["references"] or ()),
        "Run": run.snapshot,
        "Last response": run_row["answered_at"] and f"{run_row['answered_at']:%Y-%m-%d %H:%M} UTC",
        "Judges": "\n".join(judge_words(str(judge)) for judge in run_row["judges"] or ()),
        "Embedder": run_row["embedder"],
        "Scoring": _format_policy(run_row["policy"]),
        "Run hash": run_row["run_hash"],
    }
    items = [{"fact": name, "value": value} for name, value in facts.items() if not is_unknown(value)]
    lines, introduction = str(details["description"] or "").splitlines(), _extract_introduction(details["description"])
    return Section(
        "about",
        "About this blueprint",
        [
            Prose(lines if introduction.endswith("…") else []),
            Table("What is known of the blueprint and its run", _FACT_COLUMNS, items),
        ],
    )


def _format_policy(value: Any) -> str:
    """Format a stored scoring policy in words; empty if it is unknown, and as stored if other code wrote it."""
    if is_unknown(value):
        return ""
    try:
        policy = parse_policy(str(value))
    except ConfigError:
        return str(value)
    return (
        f"{100 * policy.beta:g} % similarity, {100 * (1 - policy.beta):g} % coverage; alternatives: {policy.or_paths}; "
        f"criteria that should not be met: {policy.should_not_paths}; embedder: {policy.embedder}"
    )


_RUN_TABLES = ("rubric_responses", "rubric_judgements", "rubric_points", "rubric_similarities", "rubric_scores")
_BLUEPRINT_TABLES = ("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings")
_NOT_READ = {"rubric_judgements": ("list_order", "request_keys"), "rubric_responses": ("request_keys",)}
_LESS = {
    "raw": ("CASE WHEN class IS NULL THEN raw END", "class"),
    "transcript": ("CASE WHEN turns > 1 THEN transcript END", "turns"),
}
"""Columns that pages show in part: unreadable replies of judges, and conversations of several turns."""


class LatestRunRows(StoredRows):
    """The tables of a connection; tables of results have only the shown snapshot of each blueprint."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, runs: Mapping[str, str]) -> None:
        super().__init__(connection)
        run_rows = pd.DataFrame({"blueprint": list(runs), "snapshot": list(runs.values())}, dtype="str")
        connection.register("shown_runs", run_rows)
        self._copied: set[str] = set()
        for name in (*_RUN_TABLES, *_BLUEPRINT_TABLES):
            if "blueprint" in super().columns(name):
                self._copy(name)
        connection.unregister("shown_runs")

    def _copy(self, name: str) -> None:
        columns = super().columns(name)
        left_out = ", ".join(column for column in _NOT_READ.get(name, ()) if column in columns)
        replacements = ", ".join(f"{part} AS {column}" for column, (part, read) in _LESS.items() if {column, read} <= columns)
        projection = (f" EXCLUDE ({left_out})" if left_out else "") + (f" REPLACE ({replacements})" if replacements else "")
        condition = " AND ".join(f"rows.{key}::VARCHAR = shown.{key}" for key in ("blueprint", "snapshot") if key in columns)
        only = f"SEMI JOIN shown_runs AS shown ON {condition}" if name in _RUN_TABLES else ""
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE shown_{name} AS SELECT rows.*{projection} FROM {name} AS rows {only} ORDER BY blueprint"
        )
        self._copied.add(name)

    def columns(self, name: str) -> frozenset[str]:
        """Return the columns of the copy, if there is one."""
        return super().columns(self._copy_of(name))

    def table(self, name: str, columns: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> pa.Table:
        """Read from the copy, if there is one."""
        return super().table(self._copy_of(name), columns, where, order)

    def _copy_of(self, name: str) -> str:
        return f"shown_{name}" if name in self._copied else name
