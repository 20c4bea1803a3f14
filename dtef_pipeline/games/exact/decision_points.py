"""Decision points: a request for every information set of a small game, and the strategy that the responses define.

A player's answers at all decision points are its complete strategy, whose value `games.strategy_values` computes exactly: no cards are dealt,
so luck plays no part. Kuhn poker has 12 decision points, Leduc poker 936 (288 without suits).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import OF_FAILURES, USAGE
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.request import Message, Request, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal, Scenario
from dtef_pipeline.games.episode_items import filter_still_valid, truth_id
from dtef_pipeline.games.exact.strategies import SmallScenario, iterate_states_to_move
from dtef_pipeline.games.game_in_play import write_system_text, write_turn_text
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Player
from dtef_pipeline.games.tables import DECISION_ANSWERS
from dtef_pipeline.tables import REPLY

POINTS_AT_MOST_UNASKED = 100
"""Default number of decision points: all of Kuhn poker, a sample of Leduc poker."""
_SAMPLE_SEED = 1


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """One information set as a request."""

    id: str
    """Own card, public card and betting: `K:check,bet`."""
    state: Any
    """A state that looks like this to the seat; its hidden part is one of several. For `Scenario.read` and the like."""
    seat: int
    observation: str
    """Text that an episode shows at this place."""
    legal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawCounts:
    """Counts of the draws of one decision point. Draws without a legal command are not part of the strategy."""

    commands: Mapping[str, int]
    """Number of readable draws for every legal command."""
    draws: int

    @property
    def readable(self) -> int:
        return sum(self.commands.values())

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of each legal command among the readable draws. At least one draw must be readable."""
        return {command: number / self.readable for command, number in self.commands.items()}


def has_decision_points(scenario: Scenario[Any]) -> TypeGuard[SmallScenario[Any]]:
    """Return whether all states of the scenario can be enumerated, so that its decision points can be requested separately."""
    return all(hasattr(type(scenario), name) for name in ("strategies", "deals", "information"))


def list_decision_points(scenario: SmallScenario[Any]) -> tuple[DecisionPoint, ...]:
    """List all information sets, those of the first seat before those of the second, in the order of the deals."""
    points: dict[str, DecisionPoint] = {}
    for state, seat in iterate_states_to_move(scenario):
        name = scenario.information(state, seat)
        if name not in points:
            points[name] = DecisionPoint(name, state, seat, scenario.observation(state, seat), scenario.legal(state, seat))
    return tuple(sorted(points.values(), key=lambda point: point.seat))


def select_points_to_ask(scenario: Scenario[Any], sample: int | None = None) -> tuple[DecisionPoint, ...]:
    """Return the decision points to request; empty if the scenario has none.

    `sample`: their number, the same points every time; 0: all; None: all, but at most POINTS_AT_MOST_UNASKED. Raises ConfigError for a
    sample larger than the number of points.
    """
    if not has_decision_points(scenario):
        return ()
    points = list_decision_points(scenario)
    if sample is None:
        sample = min(len(points), POINTS_AT_MOST_UNASKED)
    if not 0 <= sample <= len(points):
        raise ConfigError(f"{scenario.name}: got a sample of {sample}; allowed: from 1 to {len(points)} decision points")
    if sample in (0, len(points)):
        return points
    places = sorted(random.Random(_SAMPLE_SEED).sample(range(len(points)), sample))  # noqa: S311 - no secret
    return tuple(points[place] for place in places)


def draw_counts(points: Sequence[DecisionPoint], readings: Mapping[str, Sequence[str | None]]) -> dict[str, DrawCounts]:
    """Count the draws of each requested point. `readings`: by point, the command read from each draw; None: no legal command."""
    return {
        point.id: DrawCounts({command: draws.count(command) for command in point.legal}, len(draws))
        for point in points
        if (draws := readings.get(point.id)) is not None
    }


_POINT_KEY = ("version", "model", "model_variant", "persona", "point", "draw")
_REPLIED = tuple(field.name for field in fields(Response) if field.name in {column.name for column in REPLY})


@dataclass(frozen=True, slots=True)
class PointRequest:
    """One draw of one player at one decision point: an episode of a single request (`asking.episodes`)."""

    point: DecisionPoint
    player: Player
    request: Request

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the request, or None after its response."""
        return None if history else self.request


@dataclass(frozen=True, slots=True)
class DecisionPlan:
    """The requests for one scenario."""

    pack: Pack
    points: Sequence[DecisionPoint]
    players: Sequence[Player]
    """Models, as themselves or as a persona; baselines make no requests."""
    draws: int
    snapshot: str

    @property
    def size(self) -> int:
        """Requests."""
        return len(self.points) * self.draws * sum(player.model is not None for player in self.players)

    def list_point_requests(self) -> Iterator[PointRequest]:
        """List all requests, draw by draw for each player, so that a budget leaves every point with fewer draws instead of some without
        any."""
        for player in self.players:
            if player.model is not None:
                point_prompts = [(point, build_point_messages(self.pack, point, player)) for point in self.points]
                for draw in range(self.draws):
                    for point, messages in point_prompts:
                        request = Request.build_request(messages, player.model, draw, self.snapshot)
                        yield PointRequest(point, player, request)


def build_point_messages(pack: Pack, point: DecisionPoint, player: Player) -> tuple[Message, ...]:
    """Build the messages that a player gets at a decision point, as in an episode that begins there."""
    persona = player.persona
    return (
        Message("system", write_system_text(pack.manifest, point.seat, persona)),
        Message("user", write_turn_text(pack, point.state, point.seat)),
    )


def iterate_answer_rows(
    plan: DecisionPlan, requests: Iterable[PointRequest], outcomes: Iterable[EpisodeResult]
) -> Iterator[dict[str, Any]]:
    """Yield a row per request with its result; missing values are null."""
    manifest = plan.pack.manifest
    of_scenario = {"league": manifest.league, "scenario": manifest.scenario, "version": manifest.version}
    constant = {**of_scenario, "snapshot": plan.snapshot, "truth_id": truth_id(manifest)}
    for request, outcome in zip(requests, outcomes, strict=True):
        yield {
            **constant,
            **_describe_asked_player(request),
            **(_read(plan.pack, request, outcome.responses[0]) if outcome.responses else _describe_failed_point(outcome)),
        }


def build_answer_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Build DECISION_ANSWERS from rows of `iterate_answer_rows`."""
    arrays = [pa.array([row.get(column.name) for row in rows], column.type) for column in DECISION_ANSWERS]
    return pa.table(arrays, schema=DECISION_ANSWERS)


def merge_point_answers(existing: pa.Table, new: pa.Table, plan: DecisionPlan) -> pa.Table:
    """Return all rows of a snapshot: the new ones, and those of earlier runs under the present rules or of another version.

    An earlier row is dropped if its player has another prompt for the same point now, so that no strategy mixes two prompts. Usage is
    counted once per request. Rows are sorted, so that equal content gives equal bytes.
    """
    old = filter_still_valid(existing, plan.pack.manifest, truth_id(plan.pack.manifest))
    old = old.filter(pc.invert(pc.is_in(_join_key(old, _POINT_KEY), _join_key(new, _POINT_KEY).combine_chunks())))
    prompt = ("version", "persona", "point")
    is_reworded = pc.and_(
        pc.is_in(_join_key(old, prompt), _join_key(new, prompt).combine_chunks()),
        pc.invert(pc.is_in(old["prompt_id"], new["prompt_id"].combine_chunks())),
    )
    rows = pa.concat_tables([old.filter(pc.invert(is_reworded)), new])
    return _keep_usage_once(rows.take(pc.sort_indices(rows, [(name, "ascending") for name in _POINT_KEY])))


def _describe_asked_player(point_request: PointRequest) -> dict[str, Any]:
    request, point = point_request.request, point_request.point
    return {
        "point": point.id,
        "seat": point.seat,
        "allowed": list(point.legal),
        "persona": point_request.player.persona_name,
        "prompt_id": request.prompt_id,
        "model": point_request.player.model_name,
        "model_variant": point_request.player.variant,
        "temperature": request.model.temperature,
        "draw": request.draw,
        "request_key": request.key,
    }


def _read(pack: Pack, point_request: PointRequest, response: Response) -> dict[str, Any]:
    reading = pack.scenario.read(response.text, point_request.point.state, point_request.point.seat)
    is_illegal = isinstance(reading, Illegal)
    return {
        **{name: getattr(response, name) for name in _REPLIED},
        "call_status": "answered",
        "response": response.text,
        "command": None if is_illegal else reading,
        "illegal_kind": reading.kind if isinstance(reading, Illegal) else None,
        "illegal_reason": reading.reason if isinstance(reading, Illegal) else None,
    }


def _describe_failed_point(outcome: EpisodeResult) -> dict[str, Any]:
    failure = outcome.failure
    assert failure is not None, "a request has either a response or a failure"
    return {"call_status": failure.status, "error": failure.message} | {name: getattr(failure, name) for name in OF_FAILURES}


def _keep_usage_once(rows: pa.Table) -> pa.Table:
    """Keep tokens and cost of each request only at its first row, because personas with the same text share requests."""
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(rows["request_key"].to_numpy(), return_index=True)[1]] = True
    is_answered = pc.equal(rows["call_status"], "answered")
    for name in USAGE:
        again = pc.and_(pa.array(~first), pc.or_(is_answered, pc.is_valid(rows[name])))
        usage = pc.if_else(again, pa.scalar(0, rows[name].type), rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), name, usage)
    return rows.cast(DECISION_ANSWERS)


def _join_key(rows: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(pc.cast(rows[name], pa.string()) for name in names), "\n")
