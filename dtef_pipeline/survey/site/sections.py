"""The sections below the leaderboards: attributes, gaps, context, metrics, evenness and repeated draws, with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.families import BETTER, UNTESTED, WORSE
from dtef_pipeline.site.content import Block, Chart, Column, Estimate, Fold, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.number_text import show
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.boards.asking_settings import Setting
from dtef_pipeline.survey.boards.conditions import compare_conditions
from dtef_pipeline.survey.boards.responsiveness import restrict_to_shared_pairs
from dtef_pipeline.survey.boards.segment_gaps import sort_by_significance
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.survey_labels import METRIC_NAMES, format_condition
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS
from dtef_pipeline.text.number_words import format_count

_MAX_GAPS = 40
_MAX_CURVES = 12
_NOTE_COLUMN = Column("note", "Note", "note")


def sections(contents: SurveyContents) -> Iterator[Section]:
    """Yield the sections in order."""
    yield _build_attributes_section(contents)
    yield _build_gaps_section(contents)
    yield _build_context_section(contents)
    yield _build_metrics_section(contents)
    yield _build_evenness_section(contents)
    yield _build_reliability_section(contents)


def _build_blocks_by_setting(contents: SurveyContents, view: str, make: Callable[[pd.DataFrame], Block | None]) -> list[Block]:
    """Return a block for each setting, unfolded for the first leaderboard."""
    blocks: list[Block] = []
    for setting in contents.settings:
        rows = setting.select_rows(contents.boards[view])
        block = make(rows) if len(rows) else None
        if block is not None:
            blocks.append(block if setting == contents.main else Fold(contents.title(setting), [block]))
    return blocks


def _build_tables(
    contents: SurveyContents,
    view: str,
    caption: str,
    columns: Sequence[Column],
    cells: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: {},
) -> list[Block]:
    """Return a table of models for each setting. `cells` computes the cells of a row that differ from the stored ones."""
    return _build_blocks_by_setting(
        contents, view, lambda rows: Table(caption, columns, [{**row, **cells(row)} for row in build_model_rows(rows)])
    )


def _select_main(contents: SurveyContents, view: str) -> pd.DataFrame:
    """Return the models' rows of a view in the setting of the first leaderboard."""
    rows = contents.main.select_rows(contents.boards[view])
    return rows[~rows["is_reference"]] if len(rows) else rows


def build_model_rows(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows of tables of models, in which baselines are shown on demand."""
    for row in convert_to_rows(rows):
        yield {**row, "_kind": "reference" if row["is_reference"] else "model"}


def _build_attributes_section(contents: SurveyContents) -> Section:
    rows = _select_main(contents, "attribute")
    means = {str(name): float(group["score"].mean()) for name, group in rows.groupby("attribute")} if len(rows) else {}
    answer = ""
    if len(means) > 1:
        best, lowest = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        answer = (
            f"Models predict segments of the attribute “{format_attribute(best)}” best ({show(means[best], 'score')}) and those of "
            f"“{format_attribute(lowest)}” worst ({show(means[lowest], 'score')})."
        )
    method = (
        "Mean score over the segments of one attribute. Sizes of segments differ, and so does what a perfect model would score."
    )
    return Section(
        "attributes", "By attribute", _build_blocks_by_setting(contents, "attribute", _build_attribute_table), answer, method
    )


def _build_attribute_table(rows: pd.DataFrame) -> Table:
    names = list(dict.fromkeys(rows.sort_values("attribute")["attribute"].astype(str)))
    columns = [
        Column("name", "Model", "model"),
        *(Column(name, format_attribute(name), "score", more=index > 4) for index, name in enumerate(names)),
    ]
    order = rows.groupby("name")["score"].mean().sort_values(ascending=False, kind="stable").index
    cells = {name: list(build_model_rows(model_rows)) for name, model_rows in rows.groupby("name")}
    table_rows = [
        {
            "name": name,
            "_kind": cells[name][0]["_kind"],
            **{row["attribute"]: Estimate.from_row(row, "score") for row in cells[name]},
        }
        for name in order
    ]
    main_rows = rows[~rows["is_reference"]] if not rows["is_reference"].all() else rows
    has_intervals = "score_low" in main_rows and main_rows["score_low"].notna().any()
    return Table(
        f"Mean score by attribute{', with 95% intervals where there are any' if has_intervals else ''}", columns, table_rows
    )


_GAP_COLUMNS = (
    Column("segment", "Segment"),
    Column("name", "Model", "model"),
    Column("verdict", "Predicted", always=True),
    Column(
        "deviation",
        "Deviation",
        "signed",
        "Score minus that of a segment of the same size that is predicted as well as the others",
        ends=("low", "high"),
    ),
    Column("p_adjusted", "p (adjusted)", "p"),
    Column("score", "Score", "score", more=True),
    Column("expected", "Expected", "score", more=True),
    Column("n", "Respondents", "count", more=True),
    Column("n_pairs", "Pairs", "count", more=True),
    Column("parsed_verdict", "By readable answers", more=True),
    _NOTE_COLUMN,
)


def _build_gaps_section(contents: SurveyContents) -> Section:
    rows = _select_main(contents, "gaps")
    answer = _gap_answer(Counter(rows["verdict"])) if len(rows) else ""
    method = (
        "A gap is a model's score in a segment minus its score in the attribute's other segments, on the same questions. Every model "
        "scores low in a segment of few people; the expected score allows for that. “worse” and “better”: p, adjusted (Holm) over the "
        f"model's attribute, is below {SIGNIFICANCE:g}. The table has the {_MAX_GAPS} rows with the smallest p; `dtef board --by gaps "
        "--top 0` has all."
    )
    blocks = _build_blocks_by_setting(contents, "gaps", lambda setting_rows: _build_gap_table(contents, setting_rows))
    return Section("gaps", "Largest gaps between segments", blocks, answer, method)


def _gap_answer(counts: Counter[str]) -> str:
    """Return how many tested pairs of a model and a segment are better or worse, or that none could be tested."""
    n_tested = counts.total() - counts[UNTESTED]
    if not n_tested:
        return "No gap could be tested; the notes below the table say why."
    summary = f"{counts[WORSE]:,} worse than its attribute's other segments, {counts[BETTER]:,} better"
    return f"{format_count(n_tested, 'pair')} of a model and a segment could be tested; the model predicts {summary}."


def _build_gap_table(contents: SurveyContents, rows: pd.DataFrame) -> Table:
    first = sort_by_significance(rows[~rows["is_reference"]]).head(_MAX_GAPS)
    links = {segment: page.link for segment, page in contents.segments.items()}
    gap_rows = convert_to_rows(first, segment=lambda segment: links.get(segment, segment))
    return Table("Segments that a model predicts worse or better than the others", _GAP_COLUMNS, gap_rows, first=10)


_CONTEXT_COLUMNS = (
    Column("name", "Model", "model"),
    Column("verdict", "Verdict", always=True),
    Column(
        "difference",
        "Difference",
        "signed",
        "Score at the highest level minus that at the lowest, on the same pairs",
        ends=("low", "high"),
    ),
    Column("p_adjusted", "p (adjusted)", "p"),
    Column("condition", "Condition"),
    Column("levels", "Levels", more=True),
    Column("score_at_lowest_context", "Least context", "score", more=True),
    Column("score_at_highest_context", "Most context", "score", more=True),
    Column(
        "slope",
        "Per question",
        "signed",
        "Change of the score per context question",
        more=True,
        ends=("slope_low", "slope_high"),
    ),
    Column("n_pairs", "Pairs", "count", more=True),
    _NOTE_COLUMN,
)


def _build_context_section(contents: SurveyContents) -> Section:
    tests = contents.boards["context"]
    rows = tests[~tests["is_reference"]] if len(tests) else tests
    counts = rows["verdict"].value_counts() if len(rows) else pd.Series(dtype=int)
    answer = (
        f"{format_count(len(rows), 'test')} of models: {', '.join(f'{n} {words}' for words, n in counts.items())}."
        if len(counts)
        else ""
    )
    table_rows = convert_to_rows(rows, condition=format_condition)
    method = (
        "Mean score over the number of context questions, over the pairs that have a score at every level of the model. The line of a "
        "model that uses the group's other answers rises; that of a model that answers from what it believes about the group is flat. "
        f"“stereotype-holding”: the 90% interval of the difference lies within ±{MARGIN:g}. p is adjusted over the models of one "
        "condition (Holm)."
    )
    return Section(
        "context",
        "What context does",
        [*_build_curves(contents), Table("Responsiveness to context", _CONTEXT_COLUMNS, table_rows)],
        answer,
        method,
    )


def _build_curves(contents: SurveyContents) -> Iterator[Chart]:
    if len({setting.level for setting in contents.settings}) < 2:
        return
    n_shown = _count_questions_shown(contents)
    shared = restrict_to_shared_pairs(contents.connection, contents.overall)
    for condition, board in shared.groupby("condition", sort=True, observed=True):
        rows = board[board["score"].notna() & ~board["is_reference"]]
        best = rows.groupby("name")["score"].max().sort_values(ascending=False, kind="stable").index[:_MAX_CURVES]
        rows = rows[rows["name"].isin(best)]
        if rows["context_level"].nunique() < 2:
            continue
        points = [
            {"label": row["name"], "x": n_shown[Setting(row["context_level"], str(condition))], "value": row["score"]}
            for row in sorted(convert_to_rows(rows), key=lambda row: (row["name"], ContextLevel(row["context_level"]).order))
        ]
        few = f", the best {_MAX_CURVES} models" if len(best) == _MAX_CURVES else ""
        caption = f"Mean score over the number of context questions, {format_condition(str(condition))}{few}"
        yield Chart("curves", points, caption, titles={"x": "context questions"})


def _count_questions_shown(contents: SurveyContents) -> dict[Setting, float]:
    """Return the average number of context questions in the prompts of each setting, or if unknown the requested number."""
    means = {}
    if has_table(contents.connection, "blueprints"):
        rows = contents.connection.execute(
            "SELECT context_level, condition, avg(context_included) FROM blueprints GROUP BY ALL"
        ).fetchall()
        means = {Setting(level, condition): mean for level, condition, mean in rows if mean is not None}
    return {setting: means.get(setting, ContextLevel(setting.level).order) for setting in contents.settings}


def _build_metrics_section(contents: SurveyContents) -> Section:
    columns = [Column("name", "Model", "model")]
    for metric in METRICS:
        is_late = metric not in METRICS[:4]
        columns += [Column(f"{metric}_cell", _similarity_name(metric), more=is_late)]
    columns += [Column(name, METRIC_NAMES[name], "score", "Corrected error: lower is better", more=True) for name in CORRECTED]

    def table(rows: pd.DataFrame) -> Table:
        # Ranks are among models only; baselines have none.
        places = {name: rows[name].where(~rows["is_reference"]).astype(float) for name in (f"{m}_rank" for m in METRICS)}
        ranked = rows.assign(**{name: rank_numbers(place, highest_first=False) for name, place in places.items()})
        table_rows = [
            {**row, **{f"{name}_cell": _format_with_rank(row, name) for name in METRICS}} for row in build_model_rows(ranked)
        ]
        return Table("Mean score under each metric, and the rank under it among models", columns, table_rows)

    method = (
        "The same predictions under each metric; ranks are by the adjusted score under that metric, so they need not follow the means. A "
        "model that does well on one and badly on another gets the shape right but misplaces mass, or the reverse. "
        f"{' and '.join(map(_similarity_name, DISTANCES))} are 1 minus a distance, so higher is better. Corrected errors do not depend "
        "on the sample size."
    )
    return Section(
        "metrics", "Other metrics", _build_blocks_by_setting(contents, "metric", table), _summarize_metrics(contents), method
    )


def _similarity_name(metric: str) -> str:
    return f"1 - {METRIC_NAMES[metric].lower()}" if metric in DISTANCES else METRIC_NAMES[metric]


def _summarize_metrics(contents: SurveyContents) -> str:
    rows = convert_to_rows(_select_main(contents, "metric"))
    metrics = [metric for metric in METRICS if len(rows) > 1 and not all(is_unknown(row.get(metric)) for row in rows)]
    firsts = [max(rows, key=lambda row: -1 if is_unknown(row[metric]) else row[metric])["name"] for metric in metrics]
    if not firsts:
        return ""
    ((first, times),) = Counter(firsts).most_common(1)
    return f"{first} has the highest mean under {times} of {format_count(len(firsts), 'metric')}."


def _format_with_rank(row: dict[str, Any], metric: str) -> str | None:
    if is_unknown(row.get(metric)):
        return None
    rank = row.get(f"{metric}_rank")
    return show(row[metric], "score") + (f" ({int(rank)})" if rank is not None and not is_unknown(rank) else "")


_EVENNESS_COLUMNS = (
    Column("name", "Model", "model"),
    Column(
        "segment_sd_true",
        "Spread",
        "score",
        "Standard deviation of the segments' true means, with its 95% interval: lower is more even",
        ends=("segment_sd_low", "segment_sd_high"),
    ),
    Column("lowest_cell", "Lowest"),
    Column("highest_cell", "Highest"),
    Column("segment_p", "p", "p", "p value of the hypothesis that all segments have the same true mean"),
    Column("segment_sd", "Observed spread", "score", "With the sampling noise of small segments", more=True),
    Column("segment_sd_expected", "Expected from sampling", "score", more=True),
    Column("n_segments", "Segments", "count", "Segments with a score, counted in each round", more=True),
    Column("consistency_note", "Note", "note"),
)


def _build_evenness_section(contents: SurveyContents) -> Section:
    rows = [row for row in convert_to_rows(_select_main(contents, "consistency")) if not is_unknown(row.get("segment_sd_true"))]
    answer = ""
    if len(rows) > 1:
        best = min(rows, key=lambda row: row["segment_sd_true"])
        answer = (
            f"{best['name']} is the most even: its segments' true means spread by {show(best['segment_sd_true'], 'score')}."
        )
    method = (
        "The spread shows how much a model's segment means differ. A small spread means even scores, which may all be low. Small "
        "segments add sampling noise to the observed spread; the spread of the true means is without it. A segment counts once per round."
    )
    caption = "Spread of the segments' mean scores, the most even first"
    tables = _build_tables(contents, "consistency", caption, _EVENNESS_COLUMNS, lambda row: _find_spread_ends(contents, row))
    return Section("evenness", "Consistency over segments", tables, answer, method)


def _find_spread_ends(contents: SurveyContents, row: dict[str, Any]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for end in ("lowest", "highest"):
        if not is_unknown(row.get(end)):
            page = contents.segments.get(row[f"{end}_segment"])
            words = f"{show(row[end], 'score')} {page.label if page else row[f'{end}_segment']}"
            cells[f"{end}_cell"] = page.link._replace(text=words) if page else words
    return cells


_DRAWS_COLUMNS = (
    Column("name", "Model", "model"),
    Column(
        "icc",
        "Agreement",
        "score",
        "Share of the variance of single draws that is between pairs; 1: draws always agree",
        ends=("low", "high"),
    ),
    Column("within_sd", "Between draws", "score", "Standard deviation of the score between draws of one pair"),
    Column("rerun_detectable", "Detectable: rerun", "score", "Smallest difference of two reruns that has 80% power"),
    Column("model_detectable", "Detectable: model", "score", "Smallest difference of two models that has 80% power"),
    Column("n_cells", "Pairs", "count", "Pairs with at least two draws", more=True),
    Column("n_draws", "Draws", "count", more=True),
    _NOTE_COLUMN,
)


def _build_reliability_section(contents: SurveyContents) -> Section:
    rows = _select_main(contents, "reliability")
    rows = rows[rows["icc"].notna()] if len(rows) else rows
    if not len(rows):
        return Section("draws", "Repeated draws", [])
    low, high = rows["icc"].min(), rows["icc"].max()
    span = show(low, "score") if low == high else f"{show(low, 'score')} to {show(high, 'score')}"
    answer = f"The agreement of repeated draws of one prompt is {span}; 1 means that they always agree."
    return Section(
        "draws", "Repeated draws", _build_tables(contents, "reliability", "Agreement of repeated draws", _DRAWS_COLUMNS), answer
    )


_CONDITION_COLUMNS = (
    Column("model", "Model", "model"),
    Column("verdict", "Verdict", always=True),
    Column(
        "difference",
        "Difference",
        "signed",
        "Mean score minus that of the reference condition, with its 95% interval",
        ends=("low", "high"),
    ),
    Column("score", "Score", "score"),
    Column("context_level", "Context", "text"),
    Column("p_adjusted", "p (adjusted)", "p", more=True),
    Column("n_pairs", "Pairs", "count", more=True),
    Column("parse_rate", "Read", "percent", more=True),
    Column("prompt_tokens", "Prompt tokens", "count", more=True),
    Column("completion_tokens", "Completion tokens", "count", more=True),
    Column("cost_usd", "Cost", "dollars", more=True),
    Column("note", "Note", "note"),
)
_CONDITIONS_GUIDE = (
    "Each condition is compared with the reference condition, on the pairs that a model has in both, in one snapshot. “better” and “worse”: the "
    f"difference is significant. “equivalent”: its 90% interval lies between -{MARGIN:g} and +{MARGIN:g}. “undecided”: neither. p is "
    "adjusted over all rows of this section (Holm). Other sampling settings, such as the temperature, make another model, which is "
    "compared on the leaderboard."
)


def build_conditions_section(contents: SurveyContents) -> Section:
    """Return a table for each condition of models other than the reference condition."""
    # The condition of a run without options, or else of the first leaderboard.
    plain = BlueprintOptions().condition
    usual = plain if plain in {setting.condition for setting in contents.settings} else contents.main.condition
    frame = compare_conditions(contents.connection, SurveyBoardOptions(metric=contents.metric, condition=usual))
    rows = frame[frame["difference"].notna()]
    rows = rows.assign(model=rows["model_variant"].map(contents.names).fillna(rows["model_variant"]))
    blocks = [
        Table(f"{format_condition(str(name))}, against {format_condition(usual)}", _CONDITION_COLUMNS, convert_to_rows(group))
        for name, group in rows.groupby("condition")
    ]
    counts = Counter(rows["verdict"])
    verdict_counts = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    answer = (
        f"{format_count(counts.total(), 'comparison')} with “{format_condition(usual)}”: {verdict_counts}." if counts else ""
    )
    return Section("conditions", "Conditions", blocks, answer, _CONDITIONS_GUIDE)
