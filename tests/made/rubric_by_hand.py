"""The scores of a blueprint worked out from its document, from what models were heard to say and from what judges meant: plain loops."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from tests.fake_llm_server import vector_of
from tests.made.rubric_replies import VERDICTS, Players, Said

BETA = 0.35


class Reply(NamedTuple):
    """What a model came to write for a prompt."""

    status: str
    text: str


class ByHand(NamedTuple):
    """Scores by what they are of."""

    replies: dict[tuple[str, str, float, int], Reply]
    """By prompt, model, temperature and place of the system prompt."""
    points: dict[tuple[Any, ...], float | None]
    """By the same, and block, path and position."""
    cells: dict[tuple[str, str, float, int], tuple[float | None, float | None, float | None]]
    """Coverage, similarity and hybrid."""
    variants: dict[tuple[str, float, int], float | None]
    models: dict[str, float | None]


def scored_by_hand(
    header: Mapping[str, Any],
    prompts: Sequence[Mapping[str, Any]],
    judges: Sequence[tuple[str, str]],
    players: Players,
    numbers: Mapping[str, float] = VERDICTS,
) -> ByHand:
    """`judges`: approach and model of each; `numbers`: of classes; the header's models are written `openai:NAME`."""
    found = ByHand({}, {}, {}, {}, {})
    systems = header.get("systems", [header.get("system")])
    temperatures = header.get("temperatures", [header.get("temperature", 0.0)])
    names = [name.removeprefix("openai:") for name in header["models"]]
    for model in names:
        of_model = []
        for temperature in temperatures:
            for place, system in enumerate(systems):
                cells = []
                for prompt in prompts:
                    at = (prompt["id"], model, temperature, place)
                    found.replies[at] = reply = _spoken(prompt, system, model, temperature, players)
                    points = _points(prompt, reply, judges, players, numbers)
                    found.points.update({(*at, *where): score for where, (score, _) in points.items()})
                    found.cells[at] = _cell(prompt, reply, points)
                    cells.append((prompt.get("weight", 1), found.cells[at][2]))
                of_model.append(_mean(cells))
                found.variants[model, temperature, place] = of_model[-1]
        found.models[model] = _mean([(1, one) for one in of_model])
    return found


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-9)


def _spoken(prompt: Mapping[str, Any], system: str | None, model: str, temperature: float, players: Players) -> Reply:
    said: Said = (("system", system),) if system is not None else ()
    turns = [next(iter(turn.items())) for turn in prompt.get("messages", [{"user": prompt.get("prompt")}])]
    if turns[-1][0] == "user":
        turns.append(("assistant", None))
    own = []
    for role, text in turns:
        if text is None:
            text = players.said[model, temperature, said]
            own.append(text.strip())
            if not own[-1]:
                return Reply("empty", "\n\n".join(one for one in own if one))
        said = (*said, (role, text))
    return Reply("ok", "\n\n".join(own))


def _points(
    prompt: Mapping[str, Any],
    reply: Reply,
    judges: Sequence[tuple[str, str]],
    players: Players,
    numbers: Mapping[str, float],
) -> dict[tuple[str, int | None, int], tuple[float | None, float]]:
    """Score and weight by block, path and position; nothing where nothing was written."""
    if reply.status != "ok":
        return {}
    found: dict[tuple[str, int | None, int], tuple[float | None, float]] = {}
    for block in ("should", "should_not"):
        path = -1
        for place, given in enumerate(prompt.get(block, [])):
            path += isinstance(given, list)
            inside = enumerate(given) if isinstance(given, list) else [(place, given)]
            for position, criterion in inside:
                score, weight = _point(criterion, reply.text, judges, players, numbers)
                score = score if score is None or block == "should" else 1 - score
                found[block, path if isinstance(given, list) else None, position] = score, weight
    return found


def _point(
    criterion: Any, text: str, judges: Sequence[tuple[str, str]], players: Players, numbers: Mapping[str, float]
) -> tuple[float | None, float]:
    if isinstance(criterion, str):
        criterion = {"text": criterion}
    weight = criterion.get("weight", 1)
    if "text" in criterion:
        meant = [players.verdicts[model, approach, text, criterion["text"]][-1] for approach, model in judges]
        votes = [numbers[name] for name in meant if name is not None]
        return (sum(votes) / len(votes) if votes else None), weight
    name, argument = next((key[1:], value) for key, value in criterion.items() if key.startswith("$"))
    return _computed(name, argument, text), weight


def _computed(name: str, argument: Any, text: str) -> float:
    if name == "contains":
        return float(argument in text)
    if name == "icontains":
        return float(argument.lower() in text.lower())
    if name == "contains_any_of":
        return float(any(one in text for one in argument))
    if name == "matches":
        return float(re.search(argument, text) is not None)
    if name == "is_json":
        try:
            return float(isinstance(json.loads(text), (dict, list)))
        except ValueError:
            return 0.0
    assert name == "word_count_between", name
    words, (low, high) = len(text.split()), argument
    return words / low if words < low else high / words if words > high else 1.0


def _cell(
    prompt: Mapping[str, Any], reply: Reply, points: Mapping[tuple[str, int | None, int], tuple[float | None, float]]
) -> tuple[float | None, float | None, float | None]:
    covered = _covered(points)
    ideal = prompt.get("ideal")
    similar = None
    if ideal is not None and reply.status == "ok":
        a, b = vector_of(reply.text), vector_of(ideal)
        product = math.fsum(x * y for x, y in zip(a, b, strict=True))
        similar = product / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    has_criteria = bool(prompt.get("should") or prompt.get("should_not"))
    if reply.status != "ok" or (has_criteria and covered is None) or not (has_criteria or ideal):
        return covered, similar, None
    if ideal is None:
        return covered, None, covered
    assert similar is not None
    return covered, similar, max(0, similar) if covered is None else BETA * max(0, similar) + (1 - BETA) * covered


def _covered(points: Mapping[tuple[str, int | None, int], tuple[float | None, float]]) -> float | None:
    """The mean of required points, and of one point for each block of paths: the best path of should, the worst of should_not."""
    parts = [(weight, score) for (_, path, _), (score, weight) in points.items() if path is None]
    for block, choose in (("should", max), ("should_not", min)):
        paths = sorted({path for one, path, _ in points if one == block and path is not None})
        means = [
            _mean([(weight, score) for (one, of, _), (score, weight) in points.items() if (one, of) == (block, path)])
            for path in paths
        ]
        if known := [mean for mean in means if mean is not None]:
            parts.append((1, choose(known)))
    return _mean(parts)


def _mean(weighted: Sequence[tuple[float, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in weighted if value is not None]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known) if known else None
