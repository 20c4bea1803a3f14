"""What `dtef rubric estimate` does: the same selection as `dtef rubric run`, counted and priced, with nothing asked and nothing written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import embedder_of
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.asking.snapshot_label import require_label, require_one_spelling
from dtef_pipeline.cli.budget_lines import budget_lines
from dtef_pipeline.cli.estimate import DOLLARS, stored_responses
from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.cli.rubric_budgets import with_owners
from dtef_pipeline.cli.rubric_run import RubricOptions, chosen_blueprints
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.call_ledger import (
    NOTHING_STORED,
    PLANNED,
    PLANNED_ROLES,
    CallLedger,
    PlannedCalls,
    StoredResponses,
    UsualLengths,
)
from dtef_pipeline.judging.judges import JudgeConfig, judge_hash
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.terminal import columns_that_fit, render
from dtef_pipeline.rubric.candidates import Candidates, chosen_selectors
from dtef_pipeline.rubric.extractions import FOR_KEY_POINTS, USUAL_POINTS, will_be_judged
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.key_points import extracting_model
from dtef_pipeline.rubric.model import EXTRACTED
from dtef_pipeline.rubric.plan import EARLIER_COLUMNS, AskedBlueprint, plan
from dtef_pipeline.rubric.policy import ScoringPolicy
from dtef_pipeline.rubric.score_rows import chosen_embedder, counted_hash
from dtef_pipeline.rubric.summary_rows import MaterialTables, chosen_analysts
from dtef_pipeline.text.counted import counted
from resources.gateway.prices import Price, price
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.table_reader import TableReader

_CALL_COUNTS = ["planned", "requests", "replayed", "calls", "calls_most"]
_TOKEN_COUNTS = ["prompt_tokens", "response_tokens", "response_tokens_most"]


@reads_tables
def estimate(reader: TableReader, options: RubricOptions, output: str) -> None:
    settings = Settings.from_environment()
    keys = chosen_blueprints(reader.warehouse, options.blueprints)
    models = known_models(settings, COMPUTED_MODELS)
    names = set(Candidates(models, options.models).names)
    with stored_responses(settings) as store:
        ledger = CallLedger(_stored(store), _usual_lengths(reader))
        responses = 0
        for asked in _asked(reader, options, models, keys):
            responses += plan(asked, ledger)
            names.update(_names(asked))
    config = with_owners(options, names, models).config()["rubric_responses"]
    rows = [row for row in ledger.sorted_rows() if row.planned]
    frame = pd.DataFrame([_row(row) for row in rows], columns=["role", "model", *_CALL_COUNTS, *_TOKEN_COUNTS, *DOLLARS])
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(f"{counted(len(keys), 'blueprint')}, {counted(responses, 'response')}, snapshot {options.snapshot}\n")
    shown = _told(frame)
    fit = terminal_fit(["role", "model", "calls", *DOLLARS], ["planned", "calls_most", *_TOKEN_COUNTS[::-1], "replayed"])
    click.echo(render(shown, "table", fit=fit))
    if lacking := sum(row.calls for row in rows if row.model.name.endswith(FOR_KEY_POINTS)):
        say(f"{counted(lacking, 'ideal answer')} yet to be read for key points, taken to have {USUAL_POINTS} points each")
    for line in _lines_of_budgets(config, rows, frame):
        say(line)
    click.echo(column_lines(columns_that_fit(shown, (), None, fit), PLANNED, fit.width))


def _asked(reader: TableReader, options: RubricOptions, models: Models, keys: Sequence[str]) -> Iterator[AskedBlueprint]:
    embedder = chosen_embedder(options.embedder, models)
    analysts = chosen_analysts(options.analysts, models)
    policy = ScoringPolicy(options.beta, options.or_paths, options.should_not_paths, embedder_of(embedder))
    extractor = extracting_model(options.analysts, models) if options.extract_points else None
    house = reader.warehouse
    for key in keys:
        stored = house.values("rubric_responses", "snapshot", blueprint=key)
        require_one_spelling(require_label(options.snapshot, set(stored)), set(stored))
        head, prompts, criteria = (
            reader.rows(name, blueprint=key) for name in ("rubric_blueprints", "rubric_prompts", "rubric_criteria")
        )
        if not len(head):
            continue
        found = reader.rows("rubric_findings", columns=["code"], blueprint=key)
        is_judged = will_be_judged(prompts, criteria, extracting=options.extract_points)
        judges = chosen_judges(options.judges, head["judges"][0].as_py(), models, options.scale) if is_judged else ()
        yield AskedBlueprint(
            key,
            prompts,
            criteria,
            Candidates(models, chosen_selectors(options.models, key, head["models"][0].as_py(), found["code"].to_pylist())),
            judges,
            embedder,
            embedder.is_local,
            analysts,
            extractor,
            options.snapshot,
            options.draws,
            options.judge_draws,
            _earlier(reader, key, options.snapshot) if options.snapshot in stored else None,
            _embedded(reader, key, embedder_of(embedder)),
            _scored(reader, key, options, judges, head, policy) if analysts and options.snapshot in stored else None,
        )


def _names(asked: AskedBlueprint) -> Iterator[str]:
    """Of every model that a run asks about a blueprint."""
    yield from asked.candidates.names
    yield from (judge.model.name for judge in asked.judges)
    yield from (spec.name for spec in (asked.embedder, *asked.analysts, asked.extractor) if spec)


def _earlier(reader: TableReader, key: str, snapshot: str) -> pa.Table:
    return reader.rows("rubric_responses", columns=EARLIER_COLUMNS, blueprint=key, snapshot=snapshot)


def _embedded(reader: TableReader, key: str, embedder: str) -> frozenset[str]:
    rows = reader.rows("rubric_embeddings", columns=["embedder", "text_hash"], blueprint=key)
    return frozenset(rows.filter(pc.equal(rows["embedder"], embedder))["text_hash"].to_pylist())


def _scored(
    reader: TableReader, key: str, options: RubricOptions, judges: Sequence[JudgeConfig], head: pa.Table, policy: ScoringPolicy
) -> MaterialTables | None:
    """The tables of the snapshot, where the run would score by the same test, judges, judgements and policy; None: it would not."""
    at = {"blueprint": key, "snapshot": options.snapshot}
    runs = reader.rows("rubric_runs", **at)
    by = counted_hash(judge_hash(judges), labelled=False, no_own_judge=options.no_own_judge)
    as_now = [{"test_hash": head["test_hash"][0].as_py(), "judge_hash": by, "policy_hash": policy.policy_hash}]
    sources = reader.rows("rubric_criteria", columns=["source"], blueprint=key)["source"].to_pylist()
    # Labels may have come in since, and a run without key points takes them away.
    if (
        options.with_labels
        or (EXTRACTED in sources and not options.extract_points)
        or runs.select(list(as_now[0])).to_pylist() != as_now
    ):
        return None
    draws = pc.max(reader.rows("rubric_judgements", columns=["judge_draw"], **at)["judge_draw"]).as_py()
    if draws is not None and draws + 1 != options.judge_draws:
        return None
    prompts, criteria = (reader.rows(name, blueprint=key) for name in ("rubric_prompts", "rubric_criteria"))
    responses, scores = (reader.rows(name, **at) for name in ("rubric_responses", "rubric_scores"))
    return MaterialTables(head, prompts, criteria, responses, scores)


def _stored(store: ResponseStore | None) -> StoredResponses:
    if store is None:
        return NOTHING_STORED

    def texts(keys: Sequence[str]) -> Mapping[str, str]:
        there = store.known(keys)
        rows = store.responses([key for key in keys if key in there]) if there else None
        return {} if rows is None else dict(zip(rows["request_key"].to_pylist(), rows["text"].to_pylist(), strict=True))

    return StoredResponses(store.known, texts)


def _usual_lengths(reader: TableReader) -> UsualLengths:
    """Mean tokens of what models wrote before, whatever the blueprint and snapshot."""
    return UsualLengths(
        _mean_tokens(reader, "rubric_responses", "model_variant", "turns"),
        _mean_tokens(reader, "rubric_judgements", "judge_variant", "len(request_keys)"),
    )


def _mean_tokens(reader: TableReader, table: str, variant: str, replies: str) -> dict[str, float]:
    if not reader.warehouse.values(table, "blueprint"):
        return {}
    sql = (
        f"SELECT {variant}, sum(completion_tokens) / sum({replies}) FROM {table} "
        f"WHERE completion_tokens > 0 AND {replies} > 0 GROUP BY 1"
    )
    rows = reader.query(lambda connection: connection.execute(sql).fetchall(), only=[table])
    return {str(name): float(mean) for name, mean in rows}


def _row(row: PlannedCalls) -> dict[str, Any]:
    found = price(row.model) if row.calls else Price(0.0, 0.0)
    most = row.response_tokens_most
    return {
        "role": row.role,
        "model": row.model.name,
        **{name: getattr(row, name) for name in _CALL_COUNTS},
        "prompt_tokens": round(row.prompt_tokens),
        "response_tokens": round(row.response_tokens),
        "response_tokens_most": most if math.isfinite(most) else None,
        "cost_usd": found.of(round(row.prompt_tokens), round(row.response_tokens)) if found else None,
        "cost_usd_most": _most_cost(found, row),
    }


def _most_cost(found: Price | None, row: PlannedCalls) -> float | None:
    """US dollars for the most calls with the longest responses; None: unknown, as is that of responses without a limit."""
    prompt, response = row.prompt_tokens_most, row.response_tokens_most
    if found is None or (math.isinf(prompt) and found.prompt > 0) or (math.isinf(response) and found.completion > 0):
        return None
    return found.of(round(prompt) if math.isfinite(prompt) else 0, round(response) if math.isfinite(response) else 0)


def _told(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as people read them: after each role with several models its sum, at the end that of all."""
    parts = []
    for role in PLANNED_ROLES:
        own = frame[frame["role"] == role]
        parts.append(_texts(own))
        if len(own) > 1:
            parts.append(_texts(_sum(own, role, f"all {len(own)}")))
    parts.append(_texts(_sum(frame, "total", "")))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _sum(frame: pd.DataFrame, role: str, model: str) -> pd.DataFrame:
    total: dict[str, Any] = {"role": role, "model": model}
    total |= {name: frame[name].sum() for name in [*_CALL_COUNTS, "prompt_tokens", "response_tokens"]}
    total["response_tokens_most"] = frame["response_tokens_most"].sum(skipna=False)
    for name in DOLLARS:
        known = frame[name].dropna()
        text = f"${known.sum():,.4f}" if len(known) or not len(frame) else "unknown"
        total[name] = f"{text} and the unknown" if 0 < len(known) < len(frame) else text
    return pd.DataFrame([total])


def _texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Dollars and the longest responses as texts."""
    most = [f"{value:,.0f}" if pd.notna(value) else "no limit" for value in frame["response_tokens_most"]]
    told = {
        name: [value if isinstance(value, str) else f"${value:,.4f}" if pd.notna(value) else "unknown" for value in frame[name]]
        for name in DOLLARS
    }
    return frame.assign(response_tokens_most=most, **told)


def _lines_of_budgets(config: Mapping[str, Any], rows: Sequence[PlannedCalls], frame: pd.DataFrame) -> Iterator[str]:
    """How the budgets of the run, of its roles and of its models compare with the estimate."""
    yield from budget_lines(
        "", Budget(max_cost_usd=config.get("max_cost_usd"), max_calls=config.get("max_calls")), _usage(frame)
    )
    for role, given in config["role_budgets"].items():
        yield from budget_lines(f"{role}: ", Budget.model_validate(given), _usage(frame[frame["role"] == role]))
    names = [row.model.name.removesuffix(FOR_KEY_POINTS) for row in rows]
    of_files = {name: row.model.budget for name, row in zip(names, rows, strict=True)}
    for name, budget in of_files.items():
        chosen = Budget.model_validate(config["budgets"][name]) if name in config["budgets"] else budget
        yield from budget_lines(f"{name}: ", chosen, _usage(frame[[one == name for one in names]]))


def _usage(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """By bound of a budget, what is usual and what is the most; NaN: unknown."""
    dollars = frame[DOLLARS].astype(float)
    prompt = frame["prompt_tokens"].sum()
    most = pd.to_numeric(frame["response_tokens_most"]).sum(skipna=False)
    return {
        "max_cost_usd": (dollars["cost_usd"].sum(skipna=False), dollars["cost_usd_most"].sum(skipna=False)),
        "max_calls": (frame["calls"].sum(), frame["calls_most"].sum()),
        "max_tokens": (prompt + frame["response_tokens"].sum(), 2 * prompt + most),
    }
