"""One prompt: what was asked, what each criterion came to, how alike the responses are, and the responses side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from dtef_pipeline.report.isolated import inline, said
from dtef_pipeline.report.markup import described, dollars, is_unknown, shortened, whole
from dtef_pipeline.report.palette import steps
from dtef_pipeline.report.stored_rows import StoredRow
from dtef_pipeline.rubric.levels import Floats
from dtef_pipeline.rubric.report.marks import (
    Heat,
    HeatRow,
    heat_table,
    is_markdown,
    rendered,
    said_as,
    score_badge,
    source,
)
from dtef_pipeline.rubric.report.verdicts import Across, criteria_table, verdicts
from dtef_pipeline.rubric.results.blueprint_run import BlueprintRun, ResponseKey, mean, pairs_of, response_key
from dtef_pipeline.rubric.results.judged_points import JudgedPoints, judged
from dtef_pipeline.text.counted import counted

MOST_ACROSS = 40
"""Responses that have a column each; of more, each model has one."""
_SHORT_PROMPT = 140
_PARTS = ("hybrid", "coverage", "similarity")


def prompt_title(prompt: Mapping[str, Any]) -> str:
    """The beginning of what the user says, as text."""
    texts = [message["text"] for message in prompt["messages"] or () if message["role"] == "user" and message["text"]]
    return shortened(" ".join(str(texts[0]).split()), _SHORT_PROMPT, end=0.25) if texts else ""


def prompt_details(run: BlueprintRun, prompt: StoredRow) -> str:
    """The prompt as a part that opens, for a page that has several."""
    at = run.positions[prompt["prompt"]]
    scored = [run.by_model.get((prompt["prompt"], model), {}).get("hybrid") for model in run.models]
    return (
        f'<details class="prompt" id="prompt-{at}"><summary><h3>{at}. <bdi>{escape(str(prompt["prompt"]))}</bdi></h3> '
        f"{score_badge(mean(scored)) if any(not is_unknown(score) for score in scored) else ''}"
        f'<span class="asked" dir="auto">{escape(prompt_title(prompt))}</span></summary>{prompt_body(run, prompt)}</details>'
    )


def prompt_body(run: BlueprintRun, prompt: StoredRow) -> str:
    """All of a prompt, as markup."""
    name = prompt["prompt"]
    at, criteria = run.positions[name], run.criteria.of(name)
    responses = run.in_board_order(run.responses.of(name))
    found = judged(run.points.of(name), run.judgements.of(name))
    across = _across(run, responses, at)
    body = _asked(prompt)
    if criteria and across:
        body += "<h4>Criteria</h4>" + criteria_table(criteria, across, found, _score_rows(run, name, across))
    elif criteria:
        body += "<h4>Criteria</h4>" + criteria_table(criteria, [], found, [])
    else:
        body += '<p class="count">No criteria.</p>'
        rows = _score_rows(run, name, across)
        body += heat_table("Scores", "Score", [one.name for one in across], rows) if rows else ""
    body += _similarity_map(run, name, across)
    if not responses:
        return body + '<p class="count">No responses in this run.</p>'
    cells = {response_key(row)[:4]: row for row in run.cells.get(name, ())}
    cards = "".join(
        _card(run, row, f"p{at}r{place}", criteria, found, cells.get(response_key(row)[:4]), prompt["render_as"])
        for place, row in enumerate(responses, 1)
    )
    return f'{body}<h4>Responses, side by side</h4><div class="responses">{cards}</div>'


def _across(run: BlueprintRun, responses: Sequence[StoredRow], at: int) -> list[Across]:
    if len(responses) <= MOST_ACROSS:
        return [Across(run.label(row), [response_key(row)], f"p{at}r{place}") for place, row in enumerate(responses, 1)]
    by_model: dict[str, list[ResponseKey]] = {}
    for row in responses:
        by_model.setdefault(row["model"], []).append(response_key(row))
    return [Across(model, keys) for model, keys in by_model.items()]


def _asked(prompt: StoredRow) -> str:
    turns = "".join(_turn(message) for message in prompt["messages"] or ())
    systems = list(prompt["systems"] or ())
    told = "".join(
        f'<li class="turn"><span class="role">system{f" [sp_idx:{at}]" if len(systems) > 1 else ""}</span>'
        + ('<p class="count">No system prompt.</p>' if system is None else said(system))
        + "</li>"
        for at, system in enumerate(systems)
        if system is not None or len(systems) > 1
    )
    if len(systems) > 1:
        told = f"<li><details><summary>{counted(len(systems), 'system prompt')}, each asked apart</summary><ol>{told}</ol></details></li>"
    facts = {}
    if not is_unknown(prompt["weight"]) and prompt["weight"] != 1:
        facts["Weight"] = f"{prompt['weight']:g}"
    if prompt["description"]:
        facts["Description"] = rendered(prompt["description"])
    if prompt["citation"]:
        facts["Source"] = source(prompt["citation"])
    if prompt["render_as"]:
        facts["Responses are"] = inline(prompt["render_as"]) + _shown_how(prompt["render_as"])
    ideal = (
        ""
        if not prompt["ideal"]
        else f"<details open><summary>Ideal answer</summary>{said_as(prompt['ideal'], prompt['render_as'], 'ideal')}</details>"
    )
    return f'{described(facts) if facts else ""}<ol class="conversation">{told}{turns}</ol>{ideal}'


def _shown_how(form: Any) -> str:
    """How responses are shown here, which is not always as they are meant to be."""
    if is_markdown(form):
        return ", shown as such, with the source beneath"
    return "" if str(form).strip().lower() == "plaintext" else ", shown here as its source"


def _turn(message: Mapping[str, Any], form: Any = None) -> str:
    """One turn; `form`: that of what models write."""
    text = '<p class="count">The model writes this turn.</p>' if message["text"] is None else _said_by(message, form)
    return f'<li class="turn"><span class="role">{escape(str(message["role"]))}</span>{text}</li>'


def _said_by(message: Mapping[str, Any], form: Any) -> str:
    return said_as(message["text"], form) if message["role"] == "assistant" else said(message["text"])


def _score_rows(run: BlueprintRun, prompt: str, across: Sequence[Across]) -> list[HeatRow]:
    """Hybrid score, coverage and similarity of each column."""
    cells = {response_key(row)[:4]: row for row in run.cells.get(prompt, ())}
    rows = [
        HeatRow(name.capitalize(), [_score_cell(name, one, cells) for one in across])
        for name in _PARTS
        if any(not is_unknown(row[name]) for row in cells.values())
    ]
    return [HeatRow("All together"), *rows] if rows else []


def _score_cell(name: str, one: Across, cells: Mapping[tuple[Any, ...], StoredRow]) -> Heat | None:
    own = [cells[key] for key in dict.fromkeys(key[:4] for key in one.keys) if key in cells]
    return Heat(mean(row[name] for row in own), f"{one.name}: {name}") if own else None


def _similarity_map(run: BlueprintRun, prompt: str, across: Sequence[Across]) -> str:
    """How alike the responses are to each other and to the ideal answer."""
    rows = run.similarities.of(prompt)
    if not rows:
        return ""
    place = {response_key(row): int(row["place"]) for row in rows}
    size = max(place.values()) + 1
    matrix = np.full((size, size), np.nan)
    ideal = np.full(size, np.nan)
    for row in rows:
        others = [np.nan if value is None else value for value in row["to_others"] or ()][:size]
        matrix[int(row["place"]), : len(others)] = others
        ideal[int(row["place"])] = np.nan if is_unknown(row["to_ideal"]) else row["to_ideal"]
    groups = [(one.name, [place[key] for key in one.keys if key in place]) for one in across]
    groups = [(name, places) for name, places in groups if places]
    apart = matrix[~np.eye(size, dtype=bool)]
    edges = steps(np.concatenate([apart, ideal])) if np.isfinite(apart).any() or np.isfinite(ideal).any() else steps([0.0, 1.0])
    alike = _group_means(matrix, [places for _, places in groups])
    shown = [
        HeatRow(
            f"<bdi>{escape(name)}</bdi>", [_alike(value, name, other) for value, (other, _) in zip(row, groups, strict=True)]
        )
        for row, (name, _) in zip(alike.tolist(), groups, strict=True)
    ]
    if np.isfinite(ideal).any():
        shown.append(HeatRow("Ideal answer", [Heat(mean(ideal[own]), f"{name}, ideal answer") for name, own in groups]))
    table = heat_table("Cosine similarity of the responses' texts", "Response", [name for name, _ in groups], shown, edges)
    return f'<details><summary>How alike the responses are</summary><p class="count">{_SIMILARITY_TOLD}</p>{table}</details>'


_SIMILARITY_TOLD = "-1 to 1, 1 is the same direction of meaning. Colours run from the least to the most alike of this prompt."


def _group_means(matrix: Floats, groups: Sequence[Sequence[int]]) -> Floats:
    """(groups, groups) mean similarity of two columns' responses, none with itself; NaN where there is none."""
    among = np.zeros((len(groups), len(matrix)))
    for row, places in zip(among, groups, strict=True):
        row[list(places)] = 1
    known = np.isfinite(matrix) & ~np.eye(len(matrix), dtype=bool)
    sums, counts = (among @ part @ among.T for part in (np.where(known, matrix, 0.0), known.astype(np.float64)))
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _alike(value: float, name: str, other: str) -> Heat | None:
    """None: a response with itself."""
    return None if name == other and is_unknown(value) else Heat(value, f"{name}, {other}")


def _card(
    run: BlueprintRun,
    row: StoredRow,
    anchor: str,
    criteria: Sequence[StoredRow],
    found: JudgedPoints,
    cell: StoredRow | None,
    form: Any,
) -> str:
    """One response, with the scores of its cell; `form`: what its prompt has as `render_as`."""
    label = run.label(row)
    numbers = "".join(
        f"<span>{name} {score_badge(cell[name])}</span>"
        for name in _PARTS
        if cell is not None and (name == "hybrid" or not is_unknown(cell[name]))
    )
    several = " (mean of its draws)" if "draw" in run.has_several and numbers else ""
    reasons = _why_unscored(cell)
    return (
        f'<article class="response" id="{anchor}" data-model="{escape(label)}"><h5><bdi>{escape(label)}</bdi></h5>'
        f'<p class="numbers">{numbers}{several}</p>{reasons}{_state_of(row)}{said_as(row["text"], form)}{_transcript(row, form)}'
        f'{verdicts(anchor, response_key(row), criteria, found)}<p class="count used">{_used(row)}</p></article>'
    )


def _why_unscored(cell: Mapping[str, Any] | None) -> str:
    if cell is None or not is_unknown(cell["hybrid"]):
        return ""
    told = "; ".join(reason for reason, _ in pairs_of(cell["reasons"]))
    return f'<p class="flagged small">Unscored: {escape(told or "no reason was kept")}.</p>'


def _state_of(row: Mapping[str, Any]) -> str:
    flags = []
    if row["status"] not in (None, "ok"):
        why = "" if is_unknown(row["error"]) else f": {row['error']}"
        flags.append(f"{row['status']}{why}")
    if row["cut"]:
        flags.append("cut by the limit of tokens")
    return "".join(f'<p class="flagged small" dir="auto">{escape(flag)}</p>' for flag in flags)


def _transcript(row: Mapping[str, Any], form: Any) -> str:
    """The whole conversation where the model wrote several turns; of one turn, it is the prompt and the response."""
    if not row["transcript"]:
        return ""
    turns = "".join(_turn(message, form) for message in row["transcript"])
    summary = f"Transcript of {counted(int(row['turns']), 'turn')} by the model"
    return f'<details><summary>{summary}</summary><ol class="conversation">{turns}</ol></details>'


def _used(row: Mapping[str, Any]) -> str:
    parts = [
        f"served by {row['served_model']}" if row["served_model"] else "",
        ""
        if is_unknown(row["completion_tokens"])
        else f"tokens {whole(row['prompt_tokens'] or 0)} + {whole(row['completion_tokens'])}",
        "" if is_unknown(row["cost_usd"]) else f"{dollars(row['cost_usd'])} US dollars",
        "" if is_unknown(row["latency_s"]) else f"{row['latency_s']:.1f} s",
    ]
    first, *rest = parts
    return ", ".join(filter(None, [f"<bdi>{escape(first)}</bdi>" if first else "", *rest]))
