"""The rows of `episodes`, built column by column from traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import FROM_RESPONSE, OF_FAILURES, USAGE
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.request import Response
from dtef_pipeline.games.contract import (
    RED_FLAG_RATE,
    RED_FLAG_WEIGHTED,
    GameMetric,
    GameTrace,
    WinnerlessScenario,
    is_on_unit_scale,
    merge_metrics,
    require_composite,
)
from dtef_pipeline.games.episode import GameEpisode, LeaguePlan, Match
from dtef_pipeline.games.episode_items import merge_still_valid, truth_id
from dtef_pipeline.games.game_in_play import FORFEIT_FLAG, encode_trace, hash_trace
from dtef_pipeline.games.manifest import SEVERITY_WEIGHTS
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Player
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS, EPISODES

PLAYED_EPISODE, OUT_OF_BUDGET = "played", "skipped_budget"
_NO_REQUESTS = EpisodeResult()


class EpisodeColumns:
    """Columns of `episodes` to which episodes are added one by one: a league of baselines has a hundred thousand of them."""

    def __init__(self, plan: LeaguePlan) -> None:
        self._plan = plan
        self._columns: dict[str, list[Any]] = {column.name: [] for column in EPISODES}
        self._truth_id = truth_id(plan.pack.manifest)
        self._serialized: dict[int, tuple[GameTrace, str, str]] = {}

    def add(self, match: Match, trace: GameTrace, play: EpisodeResult = _NO_REQUESTS) -> None:
        """Add one episode. `play`: its requests and responses, of all seats."""
        row = {
            **self._describe_players(match),
            **self._describe_result(match, trace, play),
            **self._count_moves(match, trace, play),
        }
        for name, column in self._columns.items():
            column.append(row[name])

    def table(self) -> pa.Table:
        """Return the table of all rows."""
        return pa.table([pa.array(self._columns[column.name], column.type) for column in EPISODES], schema=EPISODES)

    def _describe_players(self, match: Match) -> dict[str, Any]:
        item, player = match.item, match.player
        return {
            **_identify_episode(self._plan, match),
            "truth_id": self._truth_id,
            "persona": player.persona_name,
            "model": player.model_name,
            "model_variant": player.variant,
            "temperature": player.model.temperature if player.model else None,
            "draw": match.draw,
            "opponent": item.opponent,
            "seat": item.seat,
        }

    def _describe_result(self, match: Match, trace: GameTrace, play: EpisodeResult) -> dict[str, Any]:
        seat, result = match.item.seat, trace.result
        is_stopped = play.failure is not None and play.failure.status == "budget"
        status = PLAYED_EPISODE if result else OUT_OF_BUDGET if is_stopped else "error"
        text, trace_hash = self._serialize_trace(trace)
        return {
            "status": status,
            "reason": None if result else (play.failure.message if play.failure else "it stopped before its end"),
            "outcome": result.outcomes[seat] if result else None,
            "reward": float(result.rewards[seat]) if result else None,
            "rewards": [float(reward) for reward in result.rewards] if result else [],
            "flags": list(result.flags) if result else [],
            "metric_counts": [(name, *count) for name, count in sorted(trace.metric_counts[seat].items())] if result else [],
            "trace": text,
            "trace_hash": trace_hash,
            "answered_at": min((response.answered_at for response in play.responses), default=None),
        }

    def _serialize_trace(self, trace: GameTrace) -> tuple[str, str]:
        """Return a trace as JSON with its hash. A game of baselines is serialized only once, although it is an episode of each seat."""
        entry = self._serialized.get(id(trace))
        if entry is None or entry[0] is not trace:
            entry = self._serialized[id(trace)] = (trace, encode_trace(trace), hash_trace(trace))
        return entry[1], entry[2]

    def _count_moves(self, match: Match, trace: GameTrace, play: EpisodeResult) -> dict[str, Any]:
        seat = match.item.seat
        usage = {"tokens": None, "cost_usd": None}
        if match.player.model:
            writers = [move.seat for move in trace.moves if move.text is not None]  # in the order of the responses
            replies = zip(play.responses, writers, strict=False)
            usage = _sum_usage_of_responses(response for response, writer in replies if writer == seat)
        return {**count_seat(trace, seat), **usage}


def count_seat(trace: GameTrace, seat: int) -> dict[str, int]:
    """Count what a seat did in an episode, finished or not, by column of EPISODES."""
    moves = [move for move in trace.moves if move.seat == seat]
    kinds = Counter(move.illegal.kind for move in moves if move.illegal)
    is_last = bool(moves) and moves[-1] is trace.moves[-1] and moves[-1].command is None
    return {
        "n_turns": len({move.turn for move in moves}),
        "illegal": kinds["illegal"] + kinds["unparsed"],
        "unparsed": kinds["unparsed"],
        "refused": kinds["refused"],
        "forfeits": int(is_last and trace.result is not None and FORFEIT_FLAG in trace.result.flags),
        "defaults": sum(move.by_default for move in moves),
    }


def merge_episodes(existing: pa.Table, new: pa.Table, plan: LeaguePlan) -> pa.Table:
    """Return all rows of a snapshot: the new ones, and those of earlier runs under the present rules or of another version.

    Ordered by version, model, persona, draw and item, so that equal content gives equal bytes.
    """
    order = ("version", "model", "model_variant", "persona", "draw", "item_id")
    return merge_still_valid(existing, new, plan.pack.manifest, ("episode_id",), order)


def _sum_usage_of_responses(responses: Iterable[Response]) -> dict[str, Any]:
    tokens, cost, is_known = 0, 0.0, True
    for response in responses:
        tokens += (response.prompt_tokens or 0) + (response.completion_tokens or 0)
        is_known = is_known and response.cost_usd is not None
        cost += response.cost_usd or 0.0
    return {"tokens": tokens, "cost_usd": cost if is_known else None}


_TURN_ORDER = ("version", "model", "model_variant", "persona", "draw", "item_id", "episode_id", "turn", "attempt")


def iterate_turn_rows(
    plan: LeaguePlan, match: Match, episode: GameEpisode, trace: GameTrace, play: EpisodeResult
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one episode, in the order of its texts."""
    seats = match.list_seated_players(plan.n_seats)
    episode_columns = _identify_episode(plan, match)
    texts = Counter[tuple[int, int]]()
    text_moves = (move for move in trace.moves if move.text is not None)
    for move, response, reaction in zip(text_moves, play.responses, episode.list_reactions(), strict=False):
        attempt = texts[move.turn, move.seat]
        texts[move.turn, move.seat] += 1
        yield {
            **episode_columns,
            **_locate_turn(match, seats[move.seat], move.seat, move.turn, attempt),
            **{name: getattr(response, name) for name in ("prompt_id", "request_key", *FROM_RESPONSE)},
            "call_status": "answered",
            "response": response.text,
            "plan": move.plan,
            "action": move.command,
            "reaction": reaction,
            "legal": move.illegal is None,
        }
    if play.failure is not None and (request := episode.next(play.responses)) is not None:
        seat, turn = episode.seat or 0, episode.turn
        place = _locate_turn(match, seats[seat], seat, turn, texts[turn, seat])
        yield {
            **episode_columns,
            **place,
            "prompt_id": request.prompt_id,
            "request_key": request.key,
            "call_status": play.failure.status,
            "error": play.failure.message,
            **{name: getattr(play.failure, name) for name in OF_FAILURES},
        }


def build_turn_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Build EPISODE_TURNS from rows of `iterate_turn_rows`; missing values are null."""
    return pa.table([pa.array([row.get(item.name) for row in rows], item.type) for item in EPISODE_TURNS], schema=EPISODE_TURNS)


def merge_turns(existing: pa.Table, new: pa.Table, plan: LeaguePlan, episodes: pa.Table) -> pa.Table:
    """Return all rows of a snapshot: the new ones, and those of earlier runs whose episode is still in `episodes`, the table as it is
    written.

    Usage is counted once per request, at its first row, because a game of two models is an episode of both.
    """
    truths = dict(zip(episodes["episode_id"].to_pylist(), episodes["truth_id"].to_pylist(), strict=True))
    rows = []
    for table in (existing, new):
        truth = pa.array([truths.get(episode_id) for episode_id in table["episode_id"].to_pylist()], pa.string())
        rows.append(table.append_column("truth_id", truth).filter(pc.is_valid(truth)))
    turns = merge_still_valid(rows[0], rows[1], plan.pack.manifest, ("episode_id",), _TURN_ORDER).drop_columns(["truth_id"])
    first = np.zeros(len(turns), dtype=bool)
    first[np.unique(turns["request_key"].to_numpy(), return_index=True)[1]] = True
    is_answered = pc.equal(turns["call_status"], "answered")
    for name in USAGE:
        repeats = pc.and_(pa.array(~first), pc.or_(is_answered, pc.is_valid(turns[name])))
        column = pc.if_else(repeats, pa.scalar(0, turns[name].type), turns[name])
        turns = turns.set_column(turns.schema.get_field_index(name), name, column)
    return turns.cast(EPISODE_TURNS)


def _identify_episode(plan: LeaguePlan, match: Match) -> dict[str, Any]:
    return {
        **plan.pack.manifest.key_columns,
        "episode_id": plan.episode_id(match),
        "item_id": match.item.item_id,
        "cluster": str(match.item.seed),
        "snapshot": plan.snapshot,
    }


def _locate_turn(match: Match, player: Player, seat: int, turn: int, attempt: int) -> dict[str, Any]:
    assert player.model is not None, "a baseline writes no texts"
    return {
        "persona": player.persona_name,
        "seat": seat,
        "under_test": seat == match.item.seat,
        "turn": turn,
        "attempt": attempt,
        "model": player.model_name,
        "model_variant": player.variant,
        "temperature": player.model.temperature,
        "draw": match.draw,
    }


Floats = npt.NDArray[np.float64]
_OF_TURNS = {"illegal_rate": "illegal", "unparsed_rate": "unparsed", "refused_rate": "refused", "default_rate": "defaults"}
_OF_EPISODES = {
    "expected_return": ("reward", "the episode has no reward"),
    "volatility": ("reward", "the episode has no reward"),
    "forfeit_rate": ("forfeits", ""),
    "turns": ("n_turns", ""),
    "tokens": ("tokens", "no model plays"),
    "dollars": ("cost_usd", "no model plays, or a price is unknown"),
}


class _MetricCounts(NamedTuple):
    """One metric in all episodes: NaN, with a reason, for an episode in which it is not defined."""

    numerator: Floats
    denominator: Floats | float
    reason: str = ""


def select_pack_metrics(pack: Pack) -> dict[str, GameMetric]:
    """Return the metrics of the scenario's episodes by name; red flags only if the manifest has severities."""
    metrics = merge_metrics(pack.scenario.unit, pack.scenario.metrics)
    left_out = () if pack.manifest.severities else (RED_FLAG_RATE, RED_FLAG_WEIGHTED)
    return {name: metric for name, metric in metrics.items() if name not in left_out}


def compute_episode_scores(episodes: pa.Table, pack: Pack) -> pa.Table:
    """Compute EPISODE_SCORES from rows of `episodes` of the pack's version, metric by metric.

    Raises ConfigError if the manifest puts a metric into the composite score that cannot be part of one.
    """
    metrics = select_pack_metrics(pack)
    require_composite(f"{pack.name}: evaluation, algorithmic", pack.manifest.evaluation.algorithmic, metrics)
    episodes = episodes.filter(pc.equal(episodes["version"], pack.manifest.version))
    counts = _read_own_counts(episodes, {measure.name for measure in pack.scenario.metrics})
    tables = [
        _build_score_rows(episodes, metric, counts[name] if name in counts else _count_metric(name, episodes, pack), pack)
        for name, metric in metrics.items()
    ]
    return pa.concat_tables([EPISODE_SCORES.empty_table(), *tables])


def merge_episode_scores(earlier: pa.Table, new: pa.Table, pack: Pack) -> pa.Table:
    """Return the rows of other versions of the scenario, then the new ones."""
    return pa.concat_tables([earlier.filter(pc.not_equal(earlier["version"], pack.manifest.version)), new])


def _build_score_rows(episodes: pa.Table, metric: GameMetric, counts: _MetricCounts, pack: Pack) -> pa.Table:
    is_played = _convert_to_texts(episodes["status"]) == PLAYED_EPISODE
    numerator, denominator = counts.numerator, np.broadcast_to(counts.denominator, len(episodes))
    is_scored = is_played & np.isfinite(numerator) & (denominator > 0)
    reason = np.where(is_played, counts.reason, _convert_to_texts(episodes["reason"]))
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = {"numerator": numerator, "denominator": denominator, "value": numerator / denominator}
    constant = {
        "metric": metric.name,
        "metric_family": metric.family,
        "unit": metric.unit,
        "direction": metric.direction,
        "unit_scale": is_on_unit_scale(metric),
        "weight": pack.manifest.evaluation.algorithmic.get(metric.name),
    }
    columns = {
        **dict(zip(episodes.column_names, episodes.columns, strict=True)),
        **{name: pa.array(values, mask=~is_scored) for name, values in numbers.items()},
        **{
            name: pa.repeat(pa.scalar(value, EPISODE_SCORES.field(name).type), len(episodes))
            for name, value in constant.items()
        },
        "status": pa.array(np.where(is_scored, "scored", "unscored")),
        "reason": pa.array(reason, pa.string(), mask=is_scored),
    }
    return pa.table([columns[name] for name in EPISODE_SCORES.names], schema=EPISODE_SCORES)


def _count_metric(name: str, episodes: pa.Table, pack: Pack) -> _MetricCounts:
    """Count a metric that all scenarios have."""
    if name in _OF_TURNS:
        turns = _convert_to_floats(episodes["n_turns"])
        return _MetricCounts(_convert_to_floats(episodes[_OF_TURNS[name]]), turns, "the player had no turn")
    if name in _OF_EPISODES:
        column, reason = _OF_EPISODES[name]
        return _MetricCounts(_convert_to_floats(episodes[column]), 1, reason)
    if name in (RED_FLAG_RATE, RED_FLAG_WEIGHTED):
        return _MetricCounts(_sum_red_flags(episodes, pack, weighted=name == RED_FLAG_WEIGHTED), 1)
    if isinstance(pack.scenario, WinnerlessScenario):
        return _MetricCounts(np.full(len(episodes), np.nan), 1, pack.scenario.no_winner_reason)
    return _MetricCounts(np.asarray(_convert_to_texts(episodes["outcome"]) == "win", dtype=np.float64), 1)


def _sum_red_flags(episodes: pa.Table, pack: Pack, *, weighted: bool) -> Floats:
    """Sum the flags with a severity. A forfeit by the opponent has the same flag but is not a violation of the player under test."""
    weights = {flag: SEVERITY_WEIGHTS[grave] if weighted else 1 for flag, grave in pack.manifest.severities.items()}
    opponent_weights = {**weights, FORFEIT_FLAG: 0}
    rows = zip(episodes["flags"].to_pylist(), episodes["forfeits"].to_pylist(), strict=True)
    sums = [sum((weights if forfeits else opponent_weights).get(flag, 0) for flag in flags or ()) for flags, forfeits in rows]
    return np.array(sums, dtype=np.float64)


def _read_own_counts(episodes: pa.Table, names: set[str]) -> Mapping[str, _MetricCounts]:
    """Read what the scenario itself counted, by metric."""
    measures = episodes["metric_counts"].combine_chunks()
    row = pc.list_parent_indices(measures).to_numpy(zero_copy_only=False)
    metric, *parts = measures.flatten().flatten()
    counts = {}
    for name in names:
        mask = _convert_to_texts(metric) == name
        numerator, denominator = np.full(len(episodes), np.nan), np.zeros(len(episodes))
        for values, part in zip((numerator, denominator), parts, strict=True):
            values[row[mask]] = part.to_numpy(zero_copy_only=False)[mask]
        counts[name] = _MetricCounts(numerator, denominator, "the metric is not defined in this episode")
    return counts


def _convert_to_floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _convert_to_texts(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.object_]:
    return np.asarray(column.to_pylist(), dtype=object)
