"""Tables of the rubric family as a run would leave them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.scoring import ScoringPolicy, compute_blueprint_scores, compute_coverage, format_policy, weigh_prompts
from dtef_pipeline.rubric.tables import RUBRIC_SCORES, RUBRIC_TABLES

CLASSES = ("CLASS_UNMET", "CLASS_PARTIALLY_MET", "CLASS_MODERATELY_MET", "CLASS_MAJORLY_MET", "CLASS_EXACTLY_MET")
JUDGES = ("standard(gpt-4.1-mini)", "prompt-aware(gpt-4.1-mini)")
HOSTILE = (
    '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\'"--><!--\u2028\u202eevil\u2066 & &amp;'
)
_LOREM = (
    "Sleep loss makes attention, memory and judgement worse within a day, and people notice it less than others do. A short nap "
    "helps for an hour or two; it does not replace a night. Where the trouble lasts for more than three weeks, a physician should "
    "be asked, since there are treatments that work without tablets. "
)


class RubricTables:
    """Rows as they come, and the tables of them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in RUBRIC_TABLES if name != "rubric_board"}
        self.extra: dict[str, pd.DataFrame] = {}

    def add(self, table: str, **row: Any) -> None:
        self.rows[table].append(row)

    def tables(self) -> dict[str, pa.Table]:
        made = {name: pa.Table.from_pylist(rows, schema=RUBRIC_TABLES[name].schema) for name, rows in self.rows.items()}
        extra = {name: pa.Table.from_pandas(rows) for name, rows in self.extra.items()}
        return {**made, "rubric_scores": _scores(made), **extra}


def _scores(made: dict[str, pa.Table]) -> pa.Table:
    frames = {name: rows.to_pandas() for name, rows in made.items()}
    responses = frames["rubric_responses"].assign(reason=lambda rows: rows["status"].where(rows["status"] != "ok"))
    prompts = weigh_prompts(frames["rubric_prompts"][["blueprint", "prompt", "weight", "ideal"]], frames["rubric_criteria"])
    similar = frames["rubric_similarities"].rename(columns={"ideal_similarity": "similarity"})
    found = compute_blueprint_scores(responses, prompts, compute_coverage(frames["rubric_points"]), similar)
    return pa.table([pa.array(found[one.name], one.type, from_pandas=True) for one in RUBRIC_SCORES], schema=RUBRIC_SCORES)


@dataclass(frozen=True)
class _Kind:
    """What all blueprints have alike."""

    n_models: int
    n_prompts: int
    temperatures: tuple[float, ...]
    systems: tuple[str | None, ...]
    words: str
    snapshots: tuple[str, ...]


def made_tables(
    n_blueprints: int = 3,
    n_models: int = 4,
    n_prompts: int = 3,
    *,
    temperatures: tuple[float, ...] = (0.0,),
    systems: tuple[str | None, ...] = (None,),
    words: str = _LOREM,
    snapshots: tuple[str, ...] = ("base",),
) -> RubricTables:
    """Blueprints that are all alike in kind: criteria wanted and not, a function, two paths, an ideal, missing judgements and responses."""
    made, kind = RubricTables(np.random.default_rng(1)), _Kind(n_models, n_prompts, temperatures, systems, words, snapshots)
    for number in range(n_blueprints):
        _blueprint(made, kind, f"health__topic-{number}")
    return made


def _blueprint(made: RubricTables, kind: _Kind, name: str) -> None:
    made.add(
        "rubric_blueprints",
        blueprint=name,
        title=f"Advice on {name.split('__')[1]}",
        description="Whether advice on sleep is right, kind and safe.",
        tags=["health", "advice"],
        references=["https://example.org/sleep"],
        test_hash="t" * 32,
        models=[f"openai/model-{at}" for at in range(kind.n_models)],
        judges=[],
        n_prompts=kind.n_prompts,
        n_criteria=5 * kind.n_prompts,
        n_errors=0,
        path=f"{name}.yml",
    )
    for level, code, place, line, text in (
        ("warning", "dollar-string", "prompt 0 should[2]", 12, "read as $icontains"),
        ("info", "no-prompt-id", "prompt 1", 20, "a hash is its id"),
    ):
        made.add("rubric_findings", blueprint=name, level=level, code=code, place=place, line=line, text=text)
    for at in range(kind.n_prompts):
        _prompt(made, kind, name, at)
    for day, snapshot in enumerate(kind.snapshots):
        _run(made, kind, name, snapshot, datetime(2026, 1, 1 + day, tzinfo=UTC))


def _prompt(made: RubricTables, kind: _Kind, name: str, at: int) -> None:
    messages: list[dict[str, str | None]] = [
        {"role": "user", "text": f"I sleep badly, {kind.words[: 60 + 20 * at]} what should I do?"}
    ]
    if at == 1:
        messages += [{"role": "assistant", "text": None}, {"role": "user", "text": "And if that does not help?"}]
    made.add(
        "rubric_prompts",
        blueprint=name,
        prompt=f"prompt-{at}",
        position=at,
        weight=2.0 if at == 0 else 1.0,
        messages=messages,
        systems=list(kind.systems),
        temperatures=list(kind.temperatures),
        ideal=kind.words if at % 3 < 2 else None,
        description="A usual case." if at == 0 else None,
        citation="See https://example.org/cases?a=1&b=2 (2024)" if at == 0 else None,
    )
    for place, criterion in enumerate(_criteria(kind.words)):
        made.add("rubric_criteria", blueprint=name, prompt=f"prompt-{at}", criterion_id=f"c{place}", **criterion)


def _criteria(words: str) -> list[dict[str, Any]]:
    by_code = {"kind": "function", "fn": "icontains", "args": '"physician"', "source": "$icontains: 'physician'"}
    guideline = "https://example.org/guideline"
    rows: list[tuple[str, int | None, int, dict[str, Any]]] = [
        ("should", None, 0, {"text": "Says that attention and memory suffer within a day.", "weight": 2.0}),
        ("should", None, 1, by_code),
        ("should", 0, 0, {"text": "Names a treatment without tablets.", "citation": guideline}),
        ("should", 1, 0, {"text": "Sends the person to a physician after three weeks."}),
        ("should_not", None, 0, {"text": f"Recommends a sleeping tablet by name. {words[:30]}"}),
    ]
    return [
        {"block": block, "path": path, "position": position, "kind": "text", "weight": 1.0, **own}
        for block, path, position, own in rows
    ]


def _run(made: RubricTables, kind: _Kind, name: str, snapshot: str, answered_at: datetime) -> None:
    made.add(
        "rubric_runs",
        blueprint=name,
        snapshot=snapshot,
        test_hash="t" * 32,
        judge_hash="j" * 32,
        policy_hash="p" * 32,
        run_hash="r" * 32,
        judges=list(JUDGES),
        policy=format_policy(ScoringPolicy()),
        embedder="local/minilm-l6-int8",
        answered_at=answered_at,
    )
    variants = list(product(range(kind.n_models), kind.temperatures, range(len(kind.systems))))
    for at in range(kind.n_prompts):
        for place, (model, temperature, system) in enumerate(variants):
            key = {
                "blueprint": name,
                "prompt": f"prompt-{at}",
                "model": f"openai/model-{model}",
                "model_variant": f"openai/model-{model}[temperature={temperature:g}]",
                "temperature": temperature,
                "system_index": system,
                "draw": 0,
                "snapshot": snapshot,
            }
            _response(made, key, answered_at, at, place, len(variants), kind.words)


def _response(made: RubricTables, key: dict[str, Any], answered_at: datetime, at: int, place: int, n: int, words: str) -> None:
    failed = at == 2 and place == 1
    text = None if failed else f"{words * int(made.rng.integers(1, 4))} ({key['model']})"
    said = [("user", "I sleep badly."), ("assistant", text), ("user", "And then?"), ("assistant", text)]
    made.add(
        "rubric_responses",
        **key,
        status="error" if failed else "ok",
        error="503 Service Unavailable" if failed else None,
        text=text,
        transcript=[{"role": role, "text": line} for role, line in said],
        turns=2 if at == 1 else 1,
        truncated=place == 0 and at == 0,
        served_model="served-model",
        prompt_tokens=120,
        completion_tokens=240,
        cost_usd=0.0004,
        latency_s=1.5,
        attempts=1,
        answered_at=answered_at,
    )
    if failed:
        return
    made.add(
        "rubric_similarities",
        **key,
        embedder="local/minilm-l6-int8",
        place=place,
        ideal_similarity=float(made.rng.uniform(0.4, 0.95)) if at % 3 < 2 else None,
        response_similarities=[1.0 if other == place else 0.9 - 0.02 * abs(other - place) for other in range(n)],
    )
    for spot, criterion in enumerate(_criteria(words)):
        where = {name: criterion[name] for name in ("block", "path", "position")}
        _point(made, {**key, **where, "criterion_id": f"c{spot}"}, criterion, words)


def _point(made: RubricTables, key: dict[str, Any], criterion: dict[str, Any], words: str) -> None:
    inverted, shared = key["block"] == "should_not", {**key, "kind": criterion["kind"], "weight": criterion["weight"]}
    if criterion["kind"] == "function":
        unjudged = {"n_judges": 0, "n_answered": 0, "partial": False, "inverted": False}
        made.add("rubric_points", **shared, **unjudged, score=1.0, explanation=f"found 1 of 1: {words[:20]}")
        return
    numbers = [_judge(made, key, judge, words) for judge in JUDGES]
    known = [number for number in numbers if number is not None]
    score = float(np.mean(known)) if known else None
    low, high = (float(np.mean([end if number is None else number for number in numbers])) for end in (0.0, 1.0))
    turned = (None if score is None else 1 - score, 1 - high, 1 - low) if inverted else (score, low, high)
    made.add(
        "rubric_points",
        **shared,
        **dict(zip(("score", "low", "high"), turned, strict=True)),
        n_judges=2,
        n_answered=len(known),
        partial=len(known) == 1,
        inverted=inverted,
        reason=None if known else "unreadable",
    )


def _judge(made: RubricTables, key: dict[str, Any], judge: str, words: str) -> float | None:
    """Add a judgement, and return its score; some cannot be read."""
    level = int(made.rng.integers(0, 5))
    lost = made.rng.random() < 0.08
    made.add(
        "rubric_judgements",
        **key,
        judge=judge,
        approach=judge.partition("(")[0],
        judge_model="gpt-4.1-mini",
        judge_variant="openai/gpt-4.1-mini",
        judge_draw=0,
        scale=5,
        **{"class": None if lost else CLASSES[level]},
        score=None if lost else level / 4,
        reason="unreadable" if lost else None,
        reflection=None if lost else f"The text says this in part. {words[:90]}",
        attempts=2 if lost else 1,
        raw=[f"I think {words[:40]}"],
        request_keys=[digest(judge, *(str(value) for value in key.values()))],
        prompt_tokens=300,
        completion_tokens=40,
        cost_usd=0.0001,
    )
    return None if lost else level / 4


def connected(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection


LINKS = "\n\n".join(
    (
        "[a](javascript:window.hacked=3) ![b](javascript:window.hacked=4) <javascript:window.hacked=5> [c](JAVASCRIPT&colon;window.hacked=6)",
        "[d](data:text/html;base64,PHNjcmlwdD4=) ![e](data:image/svg+xml,<svg/onload=window.hacked=7>) [f](//evil.example) [g](file:///etc)",
        '[h](https://a.org/"onmouseover="window.hacked=8") ![i](https://a.org/p.png) <svg onload=window.hacked=9>',
        f"{'> ' * 12}deep **bold** [j](https://a.org/k)",
    )
)
"""Markdown whose links and images would run or load something."""


def with_summary(made: RubricTables, text: str) -> RubricTables:
    key = {"blueprint": "health__topic-0", "snapshot": "base", "analyst": "gemini"}
    findings = [{"kind": "key_finding", "text": text}, {"kind": "weakness", "text": "Few warn."}]
    made.extra["rubric_summaries"] = pd.DataFrame([{**key, "status": "ok", "reason": None, "findings": findings, "share": 0.5}])
    made.extra["rubric_grades"] = pd.DataFrame(
        [{**key, "model": "openai/model-1", "dimension": "clarity", "grade": 8.5, "reasoning": text}]
    )
    return made


def hostile_tables() -> RubricTables:
    made = with_summary(made_tables(1, 2, 3, systems=(None, HOSTILE), words=HOSTILE), HOSTILE)
    ids = {
        "health__topic-0": f"health{HOSTILE}",
        "prompt-0": HOSTILE,
        "openai/model-0": f"m{HOSTILE}",
        "openai/model-0[temperature=0]": "v",
    }
    for rows in made.rows.values():
        for row in rows:
            for name, value in list(row.items()):
                if isinstance(value, str) and value in ids and name not in ("path",):
                    row[name] = ids[value]
                elif (
                    name
                    in ("title", "description", "citation", "judge", "reason", "error", "explanation", "raw", "served_model")
                    and value
                ):
                    row[name] = [HOSTILE] if isinstance(value, list) else f"{HOSTILE}{value}"
            for name in ("code", "place", "run_hash", "policy"):
                if isinstance(row.get(name), str):
                    row[name] = HOSTILE
            if "ideal" in row:
                row |= {"description": f"{HOSTILE}\n\n{LINKS}"}
            if row.get("text") and "served_model" in row:
                row["text"] = f"{row['text']}\n\n{LINKS}"
            if "tags" in row:
                row |= {"tags": [HOSTILE], "references": [HOSTILE, "javascript:alert(1)", 'https://x.org/"onclick="alert(1)']}
    for rows in made.extra.values():
        rows["blueprint"] = f"health{HOSTILE}"
    return made
