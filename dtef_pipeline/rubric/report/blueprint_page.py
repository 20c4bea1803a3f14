"""The page of one blueprint, and where its prompts would make it too large, a page for each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import Column, described, is_unknown, long_text, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.findings import FINDING_LEVELS
from dtef_pipeline.rubric.report.blueprint_run import BlueprintRun
from dtef_pipeline.rubric.report.judges_part import judges_section
from dtef_pipeline.rubric.report.marks import SCALE_STYLE, own_file, source
from dtef_pipeline.rubric.report.prompt_part import prompt_body, prompt_details, prompt_title
from dtef_pipeline.rubric.report.rendered import rendered
from dtef_pipeline.rubric.report.score_grid import scores_section
from dtef_pipeline.rubric.report.spending import costs_section
from dtef_pipeline.rubric.report.summary_part import summary_section

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
