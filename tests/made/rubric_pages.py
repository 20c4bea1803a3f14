"""Tables of the rubric family as a run would leave them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.aggregate import compute_blueprint_scores, weigh_prompts
from dtef_pipeline.rubric.coverage import compute_coverage
from dtef_pipeline.rubric.hybrid import ScoringPolicy
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_TABLES
from dtef_pipeline.rubric.score_rows import format_policy
from dtef_pipeline.rubric.tables import RUBRIC_SCORES

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

    def __init__(self) -> None:
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


def made_tables(
    n_blueprints: int = 3,
    n_models: int = 4,
    n_prompts: int = 3,
    *,
    temperatures: tuple[float, ...] = (0.0,),
    systems: tuple[str | None, ...] = (None,),
    words: str = _LOREM,
    seed: int = 1,
    snapshots: tuple[str, ...] = ("base",),
) -> RubricTables:
    """Blueprints that are all alike in kind: criteria wanted and not, a function, two paths, an ideal, missing judgements and responses."""
    rng = np.random.default_rng(seed)
    made = RubricTables()
    for number in range(n_blueprints):
        _blueprint(made, rng, f"health__topic-{number}", n_models, n_prompts, temperatures, systems, words, snapshots)
    return made


def _blueprint(
    made: RubricTables,
    rng: np.random.Generator,
    name: str,
    n_models: int,
    n_prompts: int,
    temperatures: tuple[float, ...],
    systems: tuple[str | None, ...],
    words: str,
    snapshots: tuple[str, ...],
) -> None:
    made.add(
        "rubric_blueprints",
        blueprint=name,
        title=f"Advice on {name.split('__')[1]}",
        description="Whether advice on sleep is right, kind and safe.",
        tags=["health", "advice"],
        references=["https://example.org/sleep"],
        test_hash="t" * 32,
        models=[f"openai/model-{at}" for at in range(n_models)],
        judges=[],
        n_prompts=n_prompts,
        n_criteria=5 * n_prompts,
        n_errors=0,
        path=f"{name}.yml",
    )
    made.add(
        "rubric_findings",
        blueprint=name,
        level="warning",
        code="dollar-string",
        place="prompt 0 should[2]",
        line=12,
        text="read as $icontains",
    )
    made.add(
        "rubric_findings", blueprint=name, level="info", code="no-prompt-id", place="prompt 1", line=20, text="a hash is its id"
    )
    for at in range(n_prompts):
        _prompt(made, name, f"prompt-{at}", at, temperatures, systems, words)
    for day, snapshot in enumerate(snapshots):
        _run(made, rng, name, snapshot, day, n_models, n_prompts, temperatures, systems, words)


def _prompt(made: RubricTables, name: str, prompt: str, at: int, temperatures: Any, systems: Any, words: str) -> None:
    messages: list[dict[str, str | None]] = [
        {"role": "user", "text": f"I sleep badly, {words[: 60 + 20 * at]} what should I do?"}
    ]
    if at == 1:
        messages = [*messages, {"role": "assistant", "text": None}, {"role": "user", "text": "And if that does not help?"}]
    made.add(
        "rubric_prompts",
        blueprint=name,
        prompt=prompt,
        position=at,
        weight=2.0 if at == 0 else 1.0,
        messages=messages,
        systems=list(systems),
        temperatures=list(temperatures),
        ideal=words if at % 3 < 2 else None,
        description="A usual case." if at == 0 else None,
        citation="See https://example.org/cases?a=1&b=2 (2024)" if at == 0 else None,
    )
    for place, criterion in enumerate(_criteria(words)):
        made.add("rubric_criteria", blueprint=name, prompt=prompt, criterion_id=f"c{place}", **criterion)


def _criteria(words: str) -> list[dict[str, Any]]:
    text = {"kind": "text", "weight": 1.0}
    return [
        {
            "block": "should",
            "path": None,
            "position": 0,
            **text,
            "text": "Says that attention and memory suffer within a day.",
            "weight": 2.0,
        },
        {
            "block": "should",
            "path": None,
            "position": 1,
            "kind": "function",
            "fn": "icontains",
            "args": '"physician"',
            "weight": 1.0,
            "source": "$icontains: 'physician'",
        },
        {
            "block": "should",
            "path": 0,
            "position": 0,
            **text,
            "text": "Names a treatment without tablets.",
            "citation": "https://example.org/guideline",
        },
        {"block": "should", "path": 1, "position": 0, **text, "text": "Sends the person to a physician after three weeks."},
        {
            "block": "should_not",
            "path": None,
            "position": 0,
            **text,
            "text": f"Recommends a sleeping tablet by name. {words[:30]}",
        },
    ]


def _run(
    made: RubricTables,
    rng: np.random.Generator,
    name: str,
    snapshot: str,
    day: int,
    n_models: int,
    n_prompts: int,
    temperatures: Any,
    systems: Any,
    words: str,
) -> None:
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
        answered_at=datetime(2026, 1, 1 + day, tzinfo=UTC),
    )
    for at in range(n_prompts):
        keys = [
            {
                "blueprint": name,
                "prompt": f"prompt-{at}",
                "model": f"openai/model-{model}",
                "model_variant": f"openai/model-{model}[temperature={temperature:g}]",
                "temperature": temperature,
                "system_index": system,
                "draw": 0,
                "snapshot": snapshot,
            }
            for model in range(n_models)
            for temperature in temperatures
            for system in range(len(systems))
        ]
        for place, key in enumerate(keys):
            _response(made, rng, key, day, at, place, len(keys), words)


def _response(
    made: RubricTables, rng: np.random.Generator, key: dict[str, Any], day: int, at: int, place: int, n: int, words: str
) -> None:
    failed = at == 2 and place == 1
    text = None if failed else f"{words * int(rng.integers(1, 4))} ({key['model']})"
    made.add(
        "rubric_responses",
        **key,
        status="error" if failed else "ok",
        error="503 Service Unavailable" if failed else None,
        text=text,
        transcript=[
            {"role": "user", "text": "I sleep badly."},
            {"role": "assistant", "text": text},
            {"role": "user", "text": "And then?"},
            {"role": "assistant", "text": text},
        ],
        turns=2 if at == 1 else 1,
        truncated=place == 0 and at == 0,
        served_model="served-model",
        prompt_tokens=120,
        completion_tokens=240,
        cost_usd=0.0004,
        latency_s=1.5,
        attempts=1,
        answered_at=datetime(2026, 1, 1 + day, tzinfo=UTC),
    )
    if failed:
        return
    _similarity(made, rng, key, at, place, n)
    for spot, criterion in enumerate(_criteria(words)):
        where = {name: criterion[name] for name in ("block", "path", "position")}
        _point(made, rng, {**key, **where, "criterion_id": f"c{spot}"}, criterion, words)


def _similarity(made: RubricTables, rng: np.random.Generator, key: dict[str, Any], at: int, place: int, n: int) -> None:
    others = [1.0 if other == place else 0.9 - 0.02 * abs(other - place) for other in range(n)]
    ideal = float(rng.uniform(0.4, 0.95)) if at % 3 < 2 else None
    made.add(
        "rubric_similarities",
        **key,
        embedder="local/minilm-l6-int8",
        place=place,
        ideal_similarity=ideal,
        response_similarities=others,
    )


def _point(made: RubricTables, rng: np.random.Generator, key: dict[str, Any], criterion: dict[str, Any], words: str) -> None:
    inverted = key["block"] == "should_not"
    if criterion["kind"] == "function":
        made.add(
            "rubric_points",
            **key,
            kind="function",
            weight=criterion["weight"],
            score=1.0,
            n_judges=0,
            n_answered=0,
            partial=False,
            inverted=False,
            explanation=f"found 1 of 1: {words[:20]}",
        )
        return
    numbers = []
    for judge in JUDGES:
        level = int(rng.integers(0, 5))
        lost = rng.random() < 0.08
        numbers.append(None if lost else level / 4)
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
    known = [number for number in numbers if number is not None]
    score = float(np.mean(known)) if known else None
    low, high = (float(np.mean([end if number is None else number for number in numbers])) for end in (0.0, 1.0))
    turned = (None if score is None else 1 - score, 1 - high, 1 - low) if inverted else (score, low, high)
    made.add(
        "rubric_points",
        **key,
        kind="text",
        weight=criterion["weight"],
        score=turned[0],
        low=turned[1],
        high=turned[2],
        n_judges=2,
        n_answered=len(known),
        partial=len(known) == 1,
        inverted=inverted,
        reason=None if known else "unreadable",
    )


def connected(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection
