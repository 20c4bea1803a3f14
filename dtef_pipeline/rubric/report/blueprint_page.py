"""The page of one blueprint, and where its prompts would make it too large, a page for each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    described,
    dollars,
    estimate,
    fold,
    is_unknown,
    long_text,
    named,
    note,
    percent,
    section,
    table,
    text,
    whole,
)
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.blueprint.findings import FINDING_LEVELS
from dtef_pipeline.rubric.report.marks import SCALE_STYLE, Heat, HeatRow, heat_table, own_file, rendered, source
from dtef_pipeline.rubric.report.prompt_part import prompt_body, prompt_details, prompt_title
from dtef_pipeline.rubric.report.score_grid import model_anchor, scores_section
from dtef_pipeline.rubric.report.shared_tables import agreement_part
from dtef_pipeline.rubric.report.spending import costs_section
from dtef_pipeline.rubric.results.blueprint_run import BlueprintRun, mean
from dtef_pipeline.rubric.results.judged_points import criteria_counted, criterion_words

_PROMPTS_HOW = (
    "Each prompt opens to the conversation, its criteria against the responses, how alike the responses are, and the responses side by side "
    "with every judge's verdict. A press on a score leads to its verdicts."
)
_FINDINGS_HOW = (
    "What the loader found in the file. An error left the part out, what is unscorable is asked and not scored, and a warning says what was "
    "read in place of what was written. Places count from 0."
)
_ALL_PARTS = (
    '<div class="tools"><label>Show models whose names have <input type="search" id="only-models" autocomplete="off"></label>'
    '<p class="count" role="status" id="only-told"></p>'
    '<button type="button" data-opens="details.prompt">Open all prompts</button>'
    '<button type="button" data-opens="details.verdicts">Open all verdicts</button></div>'
)
_FINDING_COLUMNS = (
    Column("level", "Level", text),
    Column("code", "Code", text),
    Column("place", "Place", text),
    Column("line", "Line", whole),
    Column("text", "What was found", long_text),
)


def blueprint_pages(rows: StoredRows, run: BlueprintRun, page: str, most_bytes: int) -> Iterator[tuple[str, str]]:
    """The files of one blueprint with what they hold; `page` is the first one's name."""
    title = str(run.about["title"] or run.id)
    apart = run.size > most_bytes

    def link(at: int) -> str:
        return further_page(page, "prompt", at) if apart else f"#prompt-{at}"

    yield page, build_report(title, _introduction(run), _chapters(rows, run, link, apart=apart))
    if apart:
        for prompt in run.prompts:
            yield _page_of_prompt(run, prompt, page, title)


def _chapters(rows: StoredRows, run: BlueprintRun, link: Callable[[int], str], *, apart: bool) -> list[Chapter]:
    style = f"{SCALE_STYLE}\n{own_file('rubric.css')}"
    return [
        Chapter("scores", "Scores", scores_section(run, link), style=style, script=own_file("rubric.js")),
        Chapter("summary", "Executive summary", summary_section(rows, run)),
        Chapter("prompts", "Prompts", _listed_prompts(run, link) if apart else _prompts(run)),
        Chapter("judges", "Judges", judges_section(rows, run)),
        Chapter("findings", "Findings", _findings(run)),
        Chapter("costs", "Costs", costs_section(rows, {run.id: run.snapshot} if run.snapshot is not None else {})),
        Chapter("about", "About", _about(run)),
    ]


def _introduction(run: BlueprintRun) -> str:
    description = rendered(run.about["description"], "description")
    tags = "".join(f'<span class="tag">{inline(tag)}</span>' for tag in run.about["tags"] or ())
    return f'<p><a href="{INDEX_PAGE}">All blueprints</a></p>{description}{f"<p>{tags}</p>" if tags else ""}'


_ABOUT_HOW = (
    "Where this blueprint comes from, and what made the scores. Runs with the same run label can be compared with each other."
)


def _about(run: BlueprintRun) -> str:
    about, made = run.about, run.run
    references = "<br>".join(source(one) for one in about["references"] or ())
    facts: dict[str, Any] = {
        "Blueprint": f"<code><bdi>{escape(run.id)}</bdi></code>",
        "File": _code(about["path"]),
        "References": references,
        "Run": "not run yet" if run.snapshot is None else inline(run.snapshot),
        "Last response": "" if made["answered_at"] is None else f"{made['answered_at']:%Y-%m-%d %H:%M} UTC",
        "Judges": "<br>".join(inline(judge) for judge in made["judges"] or ()),
        "Embedder": "" if is_unknown(made["embedder"]) else inline(made["embedder"]),
        "Policy": _policy(made["policy"]),
        "Run label": _code(made["run_label"]),
        "Test": _code(made["test_hash"] or about["test_hash"]),
    }
    return section("about", "About", _ABOUT_HOW, described({name: value for name, value in facts.items() if value}))


def _code(value: Any) -> str:
    return "" if is_unknown(value) else f"<code><bdi>{escape(str(value))}</bdi></code>"


def _policy(value: Any) -> str:
    """The scoring policy in words; what is no JSON as it is."""
    if is_unknown(value):
        return ""
    try:
        held = json.loads(value)
    except ValueError:
        return inline(value)
    return inline("; ".join(f"{name} {setting}" for name, setting in held.items()) if isinstance(held, dict) else value)


def _prompts(run: BlueprintRun) -> str:
    body = "".join(prompt_details(run, prompt) for prompt in run.prompts)
    return section("prompts", "Prompts", _PROMPTS_HOW, (_ALL_PARTS + body) if body else "<p>No prompts.</p>")


def _listed_prompts(run: BlueprintRun, link: Callable[[int], str]) -> str:
    """Links to the prompts' own pages."""
    items = "".join(
        f'<li><a href="{link(at)}">{inline(prompt["prompt"])}</a> <span class="asked" dir="auto">{escape(prompt_title(prompt))}</span></li>'
        for at, prompt in enumerate(run.prompts, 1)
    )
    return section(
        "prompts",
        "Prompts",
        "Each prompt has a page of its own, because one page for all would be very large.",
        f'<ol class="listed">{items}</ol>',
    )


def _page_of_prompt(run: BlueprintRun, prompt: StoredRow, page: str, title: str) -> tuple[str, str]:
    at = run.positions[prompt["prompt"]]
    others = [
        f'<a href="{page}">{escape(title)}</a>',
        *([f'<a href="{further_page(page, "prompt", at - 1)}" rel="prev">Previous prompt</a>'] if at > 1 else []),
        *([f'<a href="{further_page(page, "prompt", at + 1)}" rel="next">Next prompt</a>'] if at < len(run.prompts) else []),
    ]
    tools = _ALL_PARTS.replace('<button type="button" data-opens="details.prompt">Open all prompts</button>', "")
    body = section(
        "prompt", f"Prompt {at} of {len(run.prompts)}", _PROMPTS_HOW.split(". ")[1], tools + prompt_body(run, prompt)
    )
    style = f"{SCALE_STYLE}\n{own_file('rubric.css')}"
    chapter = Chapter("prompt", f"Prompt {at}", body, style=style, script=own_file("rubric.js"))
    return further_page(page, "prompt", at), build_report(
        f"{title}: {prompt['prompt']}", f"<p>{' · '.join(others)}</p>", [chapter]
    )


def _findings(run: BlueprintRun) -> str:
    if not run.findings:
        return section("findings", "Findings", _FINDINGS_HOW, "<p>Nothing was found wrong.</p>")
    place = {level: at for at, level in enumerate(FINDING_LEVELS)}
    rows = sorted(run.findings, key=lambda row: place.get(row["level"], len(place)))
    body = table(pd.DataFrame(rows), _FINDING_COLUMNS, caption="Findings of the loader")
    return section("findings", "Findings", _FINDINGS_HOW, body)


_JUDGES_HOW = (
    "Every text criterion of every response is put to each judge. A judgement without a class is in no mean: the reply could not be read "
    "when it was asked for once more, or there was none. Krippendorff's alpha says how far judges agree: 1 fully, 0 as by chance."
)
_WIDE_SPREAD = 0.3
"""Mean standard deviation of the judgements of a criterion from which on it is listed."""
_MOST_LISTED = 20
_JUDGE_COLUMNS = (
    Column("judge", "Judge", named),
    Column("n", "Judgements", whole),
    Column("with_class", "With a class", whole),
    Column("unread", "Without", percent, "Share of judgements without a class"),
    Column("why", "Why", note),
    Column("again", "Asked twice", whole),
    Column("mean", "Mean", estimate, "Mean of its classes as numbers, 0-1, before should_not is turned round"),
    Column("cost_usd", "US dollars", dollars),
)
_SPREAD_COLUMNS = (
    Column("prompt", "Prompt", named),
    Column("criterion", "Criterion", named),
    Column("spread", "Spread", estimate, "Mean standard deviation of the judgements of one response, 0-0.5"),
    Column("n", "Responses", whole),
)


def judges_section(rows: StoredRows, run: BlueprintRun) -> str:
    table_of_judges = _judges(rows, run)
    if not table_of_judges:
        made = missing(
            "No judgements in this run", "`dtef rubric run` makes rubric_judgements where a blueprint has criteria in words"
        )
        return section("judges", "Judges", _JUDGES_HOW, made)
    body = table_of_judges + "<h3>Agreement</h3>" + agreement_part(rows, run.id) + _disputed(rows, run)
    return section("judges", "Judges", _JUDGES_HOW, body)


def _judges(rows: StoredRows, run: BlueprintRun) -> str:
    there = rows.columns("rubric_judgements")
    if not {"judge", "class", "score", "reason"} <= there or run.snapshot is None:
        return ""
    again = "count(*) FILTER (attempts > 1)" if "attempts" in there else "NULL"
    cost = "sum(cost_usd)" if "cost_usd" in there else "NULL"
    query = (
        f"(SELECT blueprint, snapshot, judge, reason, count(*) AS n, count(class) AS with_class, sum(score)::DOUBLE AS total, "
        f"{again}::BIGINT AS again, round({cost}, 9)::DOUBLE AS cost_usd FROM rubric_judgements GROUP BY ALL)"
    )
    wanted = ("judge", "reason", "n", "with_class", "total", "again", "cost_usd")
    found = pd.DataFrame(rows.rows(query, wanted, {"blueprint": run.id, "snapshot": run.snapshot}, ("judge", "reason")))
    if not len(found):
        return ""
    sums = found.groupby("judge", sort=True)[["n", "with_class", "total", "again", "cost_usd"]].sum(min_count=1).reset_index()
    lacking = found[found["reason"].notna()]
    why = {
        judge: "; ".join(f"{reason} ({n:,})" for reason, n in zip(own["reason"], own["n"], strict=True))
        for judge, own in lacking.groupby("judge")
    }
    frame = sums.assign(
        unread=1 - sums["with_class"] / sums["n"],
        mean=(sums["total"] / sums["with_class"]).where(sums["with_class"] > 0),
        why=[why.get(judge, "") for judge in sums["judge"]],
        judge=sums["judge"].map(wrapping_name),
    )
    data = frame.assign(judge=sums["judge"]).drop(columns="total")
    return table(frame, _JUDGE_COLUMNS, caption="Judges", row_head="judge", data=data)


def _disputed(rows: StoredRows, run: BlueprintRun) -> str:
    """The criteria on which judges differ widely: by the standard deviation of a response's judgements, mean over responses."""
    there = rows.columns("rubric_judgements")
    place = ("prompt", "block", "path", "position")
    one = ("blueprint", "snapshot", *place, "model_variant", "system_index", "draw")
    if not {*one, "score"} <= there:
        return ""
    keys = ", ".join([*one, *(["judge_draw"] if "judge_draw" in there else [])])
    query = (
        f"(SELECT {', '.join(one[:6])}, round(avg(spread), 9)::DOUBLE AS spread, count(spread) AS n FROM (SELECT {keys}, "
        f"CASE WHEN count(score) > 1 THEN stddev_pop(score) END AS spread FROM rubric_judgements GROUP BY {keys}) GROUP BY ALL)"
    )
    found = rows.rows(query, (*place, "spread", "n"), {"blueprint": run.id, "snapshot": run.snapshot}, place)
    wide = [row for row in found if row["spread"] is not None and row["spread"] > _WIDE_SPREAD]
    if not wide:
        return f'<p class="count">On no criterion do the judgements differ by a mean standard deviation above {_WIDE_SPREAD:g}.</p>'
    words = {
        (row["prompt"], row["block"], row["path"], row["position"]): criterion_words(row)
        for prompt in {row["prompt"] for row in wide}
        for row in run.criteria.of(prompt)
    }
    widest = sorted(wide, key=lambda row: -row["spread"])[:_MOST_LISTED]
    shown = pd.DataFrame(
        [
            {
                "prompt": wrapping_name(row["prompt"]),
                "criterion": f'<span dir="auto">{escape(words.get(tuple(row[key] for key in place), ""))}</span>',
                "spread": row["spread"],
                "n": row["n"],
            }
            for row in widest
        ]
    )
    told = criteria_counted(len(wide))
    more = f"; the {_MOST_LISTED} widest are shown" if len(wide) > _MOST_LISTED else ""
    heading = (
        f'<h3>Where judges differ</h3><p class="count">{told} with a mean standard deviation above {_WIDE_SPREAD:g}{more}.</p>'
    )
    return heading + table(shown, _SPREAD_COLUMNS, caption="Criteria on which judges differ", data=pd.DataFrame(widest))


_SUMMARY_HOW = (
    "Written by a language model that was shown the responses without the names of models, makers and providers. Names were put in "
    "afterwards. It is one reader's opinion; the scores above do not depend on it."
)
_HEADINGS = {
    "key_finding": "Key findings",
    "strength": "Strengths",
    "weakness": "Weaknesses",
    "pattern": "Patterns",
    "topic": "Topics",
}
_SUMMARY_WANTED = ("analyst", "status", "reason", "findings", "share")
_GRADE_EDGES = tuple(range(1, 10))


def summary_section(rows: StoredRows, run: BlueprintRun) -> str:
    found = (
        []
        if run.snapshot is None
        else rows.rows("rubric_summaries", _SUMMARY_WANTED, {"blueprint": run.id, "snapshot": run.snapshot})
    )
    if not found:
        made = missing("No summary of this run", "`dtef rubric run` with an analyst makes rubric_summaries and rubric_grades")
        return section("summary", "Executive summary", _SUMMARY_HOW, made)
    written = [row for row in found if not is_unknown(row["analyst"])]
    if not written:
        return section(
            "summary", "Executive summary", _SUMMARY_HOW, f"<p>No summary of this run: {inline(found[0]['reason'])}.</p>"
        )
    found = written
    body = "".join(_summary(run, row, several=len(found) > 1) for row in found)
    return section("summary", "Executive summary", _SUMMARY_HOW, body + _grades(rows, run))


def _summary(run: BlueprintRun, row: StoredRow, *, several: bool) -> str:
    by = "" if is_unknown(row["analyst"]) else f'<p class="count">By {inline(row["analyst"])}.</p>'
    why = (
        ""
        if row["status"] in (None, "ok")
        else f'<p class="flagged">{escape(str(row["status"]))}: {escape(str(row["reason"] or ""))}</p>'
    )
    cut = (
        ""
        if is_unknown(row["share"]) or row["share"] >= 1
        else f'<p class="count">The analyst was shown {row["share"]:.0%} of each text.</p>'
    )
    groups: dict[str, list[str]] = {}
    for finding in row["findings"] or ():
        groups.setdefault(str(finding["kind"]), []).append(_linked(run, str(finding["text"] or "")))
    order = [*_HEADINGS, *(kind for kind in groups if kind not in _HEADINGS)]
    parts = "".join(_group(kind, groups[kind]) for kind in order if kind in groups)
    return fold(f"Summary by {inline(row['analyst'])}", why + cut + parts, is_open=True) if several else by + why + cut + parts


def _group(kind: str, items: list[str]) -> str:
    listed = "".join(f'<li dir="auto">{item}</li>' for item in items)
    return f'<h4>{escape(_HEADINGS.get(kind, kind))}</h4><ul class="findings">{listed}</ul>'


def _linked(run: BlueprintRun, words: str) -> str:
    """The text, with a link to its scores for each model that it names."""
    if not run.called:
        return escape(words)
    names = "|".join(re.escape(name) for name in sorted(run.called, key=len, reverse=True))
    parts, end = [], 0
    for match in re.finditer(rf"(?<![\w/.-])(?:{names})(?![\w/-]|\.\w)", words):
        parts += [
            escape(words[end : match.start()]),
            f'<a href="#{model_anchor(run, run.called[match[0]])}">{escape(match[0])}</a>',
        ]
        end = match.end()
    return "".join((*parts, escape(words[end:])))


def _grades(rows: StoredRows, run: BlueprintRun) -> str:
    """Dimensions against models: the mean over analysts, the reasons when pointed at."""
    found = pd.DataFrame(
        rows.rows(
            "rubric_grades", ("model", "dimension", "grade", "reasoning"), {"blueprint": run.id, "snapshot": run.snapshot}
        )
    )
    if not len(found):
        return ""
    found["model"] = [run.called.get(name, name) for name in found["model"]]
    place = {name: at for at, name in enumerate(run.models)}
    models = sorted(found["model"].unique(), key=lambda name: (place.get(name, len(place)), name))
    cells = dict(list(found.groupby(["dimension", "model"], sort=False)))
    lines = [
        HeatRow(inline(dimension), [_grade(cells.get((dimension, model)), model) for model in models])
        for dimension in dict.fromkeys(found["dimension"])
    ]
    return fold(
        "Grades from 1 to 10",
        heat_table("Grades of dimensions, 1 to 10, higher is better", "Dimension", models, lines, _GRADE_EDGES),
    )


def _grade(own: Any, model: str) -> Heat | None:
    if own is None:
        return None
    value = mean(own["grade"])
    reasons = " ".join(str(one) for one in own["reasoning"] if not is_unknown(one))
    return Heat(value, f"{model}: {estimate(value)}. {reasons}")
