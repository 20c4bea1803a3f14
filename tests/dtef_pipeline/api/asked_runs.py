"""Evaluations that were asked for over HTTP, one per family, with the rows of their tables as a run would leave them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.api.services import Services
from dtef_pipeline.cli.preference import preference_votes
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS, EPISODES, LEAGUE_SPACE
from dtef_pipeline.identity import digest
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.score_publishing import preference_scores
from dtef_pipeline.preference.votes import Ballot, Choice, PairedResponse, PlayersVote
from dtef_pipeline.qa.tables import QA_ITEMS, QA_PROMPTS
from dtef_pipeline.survey.tables import PREDICTIONS
from resources.evaluations.evaluation_store import Evaluation, EvaluationStore, RunSpec
from resources.votes.vote_store import VoteStore
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.made import settings_in
from tests.made.made_games import scored_games
from tests.made.qa_scores import keep_in
from tests.made.qa_scores import score_row as qa_row
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import keep
from tests.made.run_events import RUN_LOG
from tests.made.scores import reference_table, scores_of, scores_table, survey_rows

CALM = "cautious:v2"
KUHN = "poker/kuhn"
BLUEPRINT = "health__topic-0"
SEGMENT = "S1/country:kenya"
LAW = "mmlu/law"
REWARDS = {seed: (float(seed), float(seed - 2)) for seed in range(1, 7)}
"""Of the persona, by seed, in both seats: their mean is 2.5."""


def submitted(folder: Path, family: str, config: Mapping[str, Any], asked: Sequence[RunSpec]) -> Evaluation:
    plan = {"job": "job", "space": "space", "keys": [one.key for one in asked], "config": config, "snapshot": "base"}
    with EvaluationStore(settings_in(folder).responses_url, RUN_LOG) as store:
        return store.submit(family, {"family": family}, {**plan, "new_keys": False}, asked, "operator")[0]


def key_of(model: str, asked: str) -> str:
    """The request key of a made-up response."""
    return digest(model, asked)


def partition(key: str) -> list[RunSpec]:
    return [RunSpec(key, {"partition": key})]


def rows_in(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows with null in what they lack."""
    return pa.table([pa.array([row.get(one.name) for row in rows], one.type) for one in schema], schema=schema)


def asked_games(folder: Path) -> Evaluation:
    """A persona and the model as itself play Kuhn poker against a baseline; seed 9, a third draw and another model are no part of it."""
    persona = {"persona": CALM, "model": "alpha", "model_variant": "alpha"}
    rows = [
        *({**row, **persona} for row in scored_games("alpha", "baseline/random", {**REWARDS, 9: (99.0, 99.0)})),
        *({**row, **persona, "draw": 2, "episode_id": f"later {row['episode_id']}"} for row in _wins("alpha")),
        *({**row, "persona": CALM, "model": "other", "model_variant": "other"} for row in _wins("other")),
        *_wins("alpha"),
        *_wins("baseline/always-pass"),
    ]
    version = load_known_scenarios(settings_in(folder))[KUHN].version
    rows = [
        {
            **row,
            "version": version,
            "league": "poker",
            "scenario": "kuhn",
            "episode_id": digest(row["persona"], row["episode_id"]),
        }
        for row in rows
    ]
    calls = [
        {
            **{name: row[name] for name in ("league", "scenario", "version", "persona", "model", "model_variant")},
            **{name: row[name] for name in ("episode_id", "item_id", "cluster", "snapshot", "draw")},
            "seat": 0,
            "under_test": True,
            "turn": 0,
            "attempt": 0,
            "request_key": f"key of {row['episode_id']}",
            "call_status": "answered",
            "temperature": 0.0,
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "cost_usd": 0.25 if row["cluster"] != "1" else None,
            "response": "ACTION: bet",
            "action": "bet",
        }
        for row in rows
        if not row["model"].startswith("baseline/")
    ]
    house = Warehouse(settings_in(folder).warehouse)
    at = {**LEAGUE_SPACE.levels(KUHN), "snapshot": "base"}
    house.write("episode_scores", rows_in(EPISODE_SCORES, rows), **at)
    played = [{**row, "status": "played", "reason": None, "reward": row["numerator"]} for row in rows]
    house.write("episodes", rows_in(EPISODES, played), **at)
    house.write("episode_turns", rows_in(EPISODE_TURNS, calls), **at)
    config = {"episodes": {"players": ["alpha", "baseline/always-pass"], "draws": 2}}
    dealt = {"scenario_version": version, "seeds": "1-6", "opponents": ["baseline/random"]}
    asks = [{"persona_id": one or "none", "scenario_id": KUHN, "persona": one, **dealt} for one in (CALM, "")]
    return submitted(folder, "games", config, [RunSpec(KUHN, one) for one in asks])


def _wins(player: str) -> list[dict[str, Any]]:
    return list(scored_games(player, "baseline/random", dict.fromkeys(range(1, 7), (10.0, 20.0))))


def keep_prompts(folder: Path, number: int = 5, conditions: Sequence[str] = ("letters",)) -> None:
    """The items `law/0`, ... and how they are asked."""
    at = {"suite": "mmlu", "part": "law"}
    items = [{**at, "item_id": f"law/{place}", "type": "choice"} for place in range(number)]
    house = Warehouse(settings_in(folder).warehouse)
    house.write("qa_items", rows_in(QA_ITEMS, items), **at)
    prompts = [{**one, "condition": condition} for condition in conditions for one in items]
    house.write("qa_prompts", rows_in(QA_PROMPTS, prompts), **at)


def asked_qa(folder: Path) -> Evaluation:
    """Three of four answers are right, the fifth was never given; another model is no part of it."""
    scores = [1.0, 1.0, 0.0, 1.0, None]
    rows = [qa_row(score, item_id=f"law/{at}") for at, score in enumerate(scores)]
    rows += [qa_row(0.0, item_id=f"law/{at}", model="other") for at in range(5)]
    responses = [
        {
            **{
                name: row[name]
                for name in ("suite", "part", "item_id", "condition", "model", "model_variant", "draw", "snapshot")
            },
            "prompt_id": "p",
            "request_key": key_of(row["model"], row["item_id"]),
            "call_status": "answered" if row["status"] == "ok" else "error",
            "response": f"The answer is {row['item_id']}" if row["status"] == "ok" else None,
            "error": None if row["status"] == "ok" else "the server is gone",
            "prompt_tokens": 50,
            "completion_tokens": 5,
            "cost_usd": 0.5,
        }
        for row in rows
    ]
    keep_prompts(folder)
    keep_in(Path(settings_in(folder).warehouse), {"qa_scores": rows, "qa_responses": responses})
    return submitted(folder, "qa", {"qa_responses": {"models": ["m"]}}, partition(LAW))


@cache
def _rubric_warehouse() -> TemporaryDirectory[str]:
    """A warehouse to copy: writing its tables takes half a second."""
    folder = TemporaryDirectory()
    keep(made_tables(1, 3, 6), Path(folder.name))
    return folder


def asked_rubric(folder: Path) -> Evaluation:
    """Of the models of made-up blueprints all but the last."""
    shutil.copytree(_rubric_warehouse().name, settings_in(folder).warehouse, dirs_exist_ok=True)
    return submitted(
        folder, "rubric", {"rubric_responses": {"models": ["openai/model-0", "openai/model-1"]}}, partition(BLUEPRINT)
    )


def asked_survey(folder: Path) -> Evaluation:
    """Six questions, of which a model was not asked the last; another model and another condition are no part of it."""
    house, at = Warehouse(settings_in(folder).warehouse), {"round": "S1", "segment": "country:kenya"}
    rows = scores_of("m", 0.5, 0.7, 0.9, 0.6, 0.8, None) + scores_of("other", *[0.1] * 6)
    rows += scores_of("m", *[0.2] * 6, condition="shift/attribute-label")
    rows += scores_of("baseline/population-marginal", *[0.6] * 6)
    scores = scores_table(rows)
    house.write("scores", scores, **at, snapshot="base")
    house.write("survey_responses", survey_rows(*[{} for _ in range(6)]), **at)
    house.write("reference_scores", reference_table([{"question_id": f"q{number}"} for number in range(6)]), **at)
    calls = [
        {
            **{name: row[name] for name in PREDICTIONS.names if name in row},
            "request_key": key_of(row["model"], row["condition"]),  # one prompt asks all questions
            "call_status": "answered",
            "response": "[0.5, 0.3, 0.2]",
            "prompt_tokens": 60 if row["question_id"] == "q0" else 0,
            "completion_tokens": 6 if row["question_id"] == "q0" else 0,
            "cost_usd": 0.75 if row["question_id"] == "q0" else 0.0,
        }
        for row in scores.to_pylist()
        if row["model"] != "baseline/population-marginal"
    ]
    house.write("predictions", rows_in(PREDICTIONS, calls), **at, snapshot="base")
    how = {"conditions": ["distribution/attribute-label"], "context_levels": ["0"]}
    return submitted(folder, "survey", {"predictions": {**how, "models": ["m"]}}, partition(SEGMENT))


ANSWER_AND_BATTERY_COLUMNS: dict[str, Callable[[Path], Evaluation]] = {
    "games": asked_games,
    "qa": asked_qa,
    "rubric": asked_rubric,
    "survey": asked_survey,
}


VOTING_PLAYERS = ("openai:gpt-4o-mini", "anthropic:claude-3-5-haiku-latest", "<script>alert(1)</script>")
LAST_VOTE = datetime(2026, 3, 20, 12, tzinfo=UTC)


def with_votes(services: Services, n_items: int = 12, last: datetime = LAST_VOTE) -> int:
    """Store pairs of three players, and votes of three reviewers over many days; returns how many votes."""
    texts = {player: f"the words of {at}" for at, player in enumerate(VOTING_PLAYERS)}
    responses = [
        PairedResponse(f"{item}-{at}", "qa", f"mmlu/{item}", player, 0, "s", "Why?", f"{texts[player]} to {item}", ())
        for item in range(n_items)
        for at, player in enumerate(VOTING_PLAYERS)
    ]
    made = make_new_pairs(responses)
    services.votes.add_pairs(responses, made, user="operator")
    n_votes, times = 0, count()
    choices: cycle[Choice] = cycle(("A", "B", "A", "tie"))
    with VoteStore(services.settings.responses_url, clock=lambda: last - timedelta(days=next(times) % 30 * 1.3)) as store:
        for at, pair in enumerate(store.pairs()):
            for reviewer in ("anna", "<b>ben</b>", "cleo")[: 1 + at % 3]:
                store.take(Ballot(pair.pair_id, reviewer, next(choices), 3))
                n_votes += 1
    return n_votes


def with_board(services: Services) -> None:
    """Write the table that the preference board is made of."""
    beats = {("fox", "owl"): 9, ("owl", "fox"): 3, ("owl", "hen & <i>co</i>"): 8, ("hen & <i>co</i>", "owl"): 2}
    votes = [
        PlayersVote("qa", f"mmlu/{at}", winner, loser, "left", f"r{at % 8}", "person", None, False, 9, 5)
        for (winner, loser), times in beats.items()
        for at in range(times)
    ]
    Warehouse(services.settings.warehouse).write("preference_scores", preference_scores(votes))


def with_votes_of_another_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, rows: Sequence[str]) -> None:
    """Import votes, each `left,right,choice,reviewer_id`, into the store below a folder, as `dtef import votes` does."""
    file = folder / "votes.csv"
    file.write_text("\n".join(("left,right,choice,reviewer_id", *rows, "")), encoding="utf-8")
    monkeypatch.setenv("DTEF_RESPONSES", settings_in(folder).responses_url)
    preference_votes.import_file(file, None, None, "operator")
