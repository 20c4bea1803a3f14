"""Judges on the site: their agreement, whether they favour their own maker, and champions by analysts' grades."""

from __future__ import annotations

from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words
from dtef_pipeline.site.content import Block, Column, Estimate, Fold, Section, Table
from dtef_pipeline.site.number_text import show_with_interval
from dtef_pipeline.text.number_words import format_count, list_first_names

_CHAMPIONS_HOW = (
    "Language models read all responses without names and graded them from 1 to 10. The champion of a dimension has the best mean grade "
    "among models with grades in at least 5 blueprints. Grades are opinions: a lead of a few tenths means nothing."
)
_AGREEMENT = """
    SELECT * REPLACE (CASE cut WHEN 'overall' THEN 'all' WHEN 'judges' THEN 'pair of judges' WHEN 'criterion' THEN 'kind of criterion'
        ELSE cut END AS cut, CASE cut WHEN 'criterion' THEN replace(value, '_', ' ') ELSE value END AS value)
    FROM rubric_agreement ORDER BY cut = 'blueprint', cut, value, scale"""
_NOTE = Column("reason", "Note", "note")
_AGREEMENT_COLUMNS = (
    Column("value", "Of"),
    Column("cut", "By"),
    Column("scale", "Classes", "count", "Number of classes that judges chose from"),
    Column("alpha", "Alpha", "number", "Krippendorff's alpha: 1 is agreement, 0 chance", ends=("low", "high")),
    Column("reading", "Reading", always=True),
    _NOTE,
)
_DISPUTED_COLUMNS = (
    Column("text", "Criterion", "long"),
    Column("place", "Prompt"),
    Column("mean_sd", "Spread", "number", "Mean standard deviation of the judges of one response, 0-0.5"),
)
_FAVOUR = "Points for models of the judge's maker beyond what other judges give, -1 to 1"
_SELF_COLUMNS = (
    Column("judge", "Judge"),
    Column("model", "Model", "model"),
    Column("maker", "Maker of both"),
    Column("gamma", "Favour", "signed", _FAVOUR, ends=("low", "high")),
    Column("p_adjusted", "p (adjusted)", "p"),
    _NOTE,
)
_CHAMPION_COLUMNS = (
    Column("dimension", "Dimension"),
    Column("model", "Champion", "model"),
    Column("mean", "Mean grade", "number", "1 to 10, higher is better"),
    Column("n_blueprints", "Blueprints", "count"),
    _NOTE,
)
_JUDGE_COLUMNS = (
    Column("judge", "Judge"),
    Column("n", "Judgements", "count", always=True),
    Column("unreadable", "Unreadable", "percent", "Share of judgements whose reply has no class"),
    Column("n_failed", "Failed", "count", "The call failed after all retries, or a budget was reached"),
)


def judge_sections(rows: RubricRows) -> list[Section]:
    """Return the sections below the leaderboard."""
    return [_build_agreement_section(rows), _build_self_section(rows), _build_champions_section(rows)]


def _build_agreement_section(rows: RubricRows) -> Section:
    """Show how far judges agree: over all judgements, by kind of criterion, pair of judges, language and blueprint."""
    agreement = rows.query(_AGREEMENT)
    overall = [row for row in agreement if row["cut"] == "all" and row["alpha"] is not None]
    answers = []
    for row in overall:
        on_scale = f" on {row['scale']} classes" if len(overall) > 1 else ""
        alpha = show_with_interval(Estimate.from_row(row, "alpha", "low", "high"))
        answers.append(f"Judges agree with alpha {alpha}{on_scale}: {row['reading']}.")
    links = {name: rows.link(name) for name in rows.about}
    lines = [
        {**row, "value": links.get(row["value"], row["value"]) if row["cut"] == "blueprint" else judge_words(row["value"])}
        for row in agreement
    ]
    disputes = [
        {**row, "place": rows.prompt_link(row["blueprint"], row["prompt"])}
        for row in rows.query("FROM rubric_disagreed ORDER BY mean_sd DESC, blueprint, prompt, block, path, position")
        if row["blueprint"] in rows.about
    ]
    disputed = Table("Criteria on which judges differ", _DISPUTED_COLUMNS, disputes, first=8)
    blocks: list[Block] = [Table("Agreement of judges", _AGREEMENT_COLUMNS, lines, first=8), Fold(disputed.caption, [disputed])]
    return Section("agreement", "Do judges agree?", blocks, " ".join(answers))


def _build_self_section(rows: RubricRows) -> Section:
    """Show how many points judges give to models of their own maker beyond what other judges give."""
    preferences = rows.query("FROM rubric_self_preference WHERE gamma IS NOT NULL")
    lines = [{**row, "judge": judge_words(row["judge"])} for row in preferences]
    favours = [f"{row['judge']} favours {row['maker']}" for row in lines if row["flagged"] and row["judge"] != "all"]
    overall = [Estimate.from_row(row, "gamma", "low", "high") for row in lines if row["judge"] == "all"]
    answer = "".join(f"All judges together: {show_with_interval(favour, 'signed')}. " for favour in overall)
    answer += f"{list_first_names(favours, 3)}." if favours else "No judge is found to favour models of its maker."
    table = Table("Judges on models of their maker", _SELF_COLUMNS, lines)
    return Section("self-preference", "Do judges favour their own maker?", [table], answer if lines else "")


def _build_champions_section(rows: RubricRows) -> Section:
    """Show the model with the best mean grade in each dimension that analysts grade."""
    champions = rows.query(
        """SELECT dimension, min(model) FILTER (champion) AS model, min(mean) FILTER (champion) AS mean,
            min(n_blueprints) FILTER (champion) AS n_blueprints,
            CASE WHEN NOT coalesce(bool_or(champion), false) THEN max_by(model || ', the best, is ' || reason, mean) END AS reason
        FROM rubric_champions GROUP BY dimension ORDER BY dimension"""
    )
    models = [row["model"] for row in champions if row["model"]]
    most = max(models, key=models.count, default="")
    answer = f"{most} is champion of {models.count(most)} of {format_count(len(champions), 'dimension')}." if models else ""
    table = Table("Champion of each dimension", _CHAMPION_COLUMNS, champions, first=15)
    return Section("champions", "Champions by graded dimension", [table], answer, _CHAMPIONS_HOW)


def build_judges_section(rows: RubricRows) -> Section:
    """Show how many judgements each judge made, and how many are missing."""
    judges = [{**row, "judge": judge_words(row["judge"])} for row in rows.query("FROM rubric_judges")]
    n, n_scored = (sum(row[name] for row in judges) for name in ("n", "n_scored"))
    answer = f"{format_count(len(judges), 'judge')} with {format_count(n, 'requested judgement')}; {n_scored:,} of them are readable."
    return Section("judges", "judges", [Table("Judges", _JUDGE_COLUMNS, judges)], answer if judges else "")
