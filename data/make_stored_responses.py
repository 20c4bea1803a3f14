"""Writes `stored_responses.jsonl`: what the invented models and the invented judge of the demo's blueprints are said to have replied.

Everything in it is made up, and stands in `invented_texts.yaml`. This script gives each text the request key that the pipeline looks for.
It has to be run again when a blueprint of the demo, what judges are told, or the sampling of models or judges changes:

    python data/make_stored_responses.py [file]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from dtef_pipeline.asking.episodes import Episode, EpisodeResult
from dtef_pipeline.asking.models import Models, load_models
from dtef_pipeline.asking.request import Response
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.consensus import FIVE_CLASSES
from dtef_pipeline.judging.judges import USUAL_APPROACHES
from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.reading import make_blueprint_id, read_blueprint
from dtef_pipeline.rubric.episodes import (
    Candidates,
    Conversation,
    JudgingEpisode,
    build_response_rows,
    choose_judges,
    iterate_judgings,
    iterate_scripts,
)
from resources.responses.files import export_responses
from resources.responses.store import ResponseStore

HERE = Path(__file__).resolve().parent
SERVED = "invented for the demo"
"""The name that the provider gives the model that responded, where there is a provider."""
WRITTEN_AT = datetime(2026, 1, 1, tzinfo=UTC)
_PROVIDER = "stored/"
_CLASS_OF = {number: name for name, number in FIVE_CLASSES.numbers.items()}


def stored_responses() -> list[Response]:
    """Everything that the demo's blueprints ask, answered. Raises KeyError or IndexError where no text was invented for a request."""
    texts = yaml.safe_load((HERE / "invented_texts.yaml").read_text(encoding="utf-8"))
    models = load_models(HERE / "models.yaml", computed=COMPUTED_MODELS)
    found: dict[str, Response] = {}
    for path in sorted((HERE / "blueprints").glob("*.yml")):
        identifier = make_blueprint_id(path.name)
        for response in _of_blueprint(path, texts["responses"][identifier], texts["verdicts"].get(identifier, {}), models):
            found[response.request_key] = response
    return list(found.values())


def _of_blueprint(path: Path, responses: Mapping[str, Any], verdicts: Mapping[str, Any], models: Models) -> Iterator[Response]:
    tables = _tables(path)
    named = tables["rubric_blueprints"].to_pylist()[0]
    candidates = Candidates(models, named["models"])
    conversations = [
        Conversation(script, spec, 0, "base")
        for script, temperatures in iterate_scripts(tables["rubric_prompts"])
        for spec in candidates.resolve_at(temperatures)
    ]
    said = [_played(one, _turns(responses[one.script.prompt][_short(one.model.name)])) for one in conversations]
    rows = build_response_rows(named["blueprint"], conversations, said)
    judges = choose_judges(named["judges"], (), models) if verdicts else ()
    judged = iterate_judgings(rows, tables["rubric_criteria"], tables["rubric_prompts"], judges, 1)
    for played in [*said, *(_played(one, _replies(one, verdicts)) for one in judged)]:
        yield from played.responses


def _tables(path: Path) -> dict[str, pa.Table]:
    read = read_blueprint(path, make_blueprint_id(path.name))
    if read.blueprint is None:
        raise ValueError(f"{path}: {read.findings}")
    return build_blueprint_tables(read, read.blueprint, path.name)


def _turns(written: str | Sequence[str]) -> Sequence[str]:
    return [written] if isinstance(written, str) else written


def _replies(one: JudgingEpisode, verdicts: Mapping[str, Any]) -> list[str]:
    """What the judge says of a criterion, and what it says when it is asked once more."""
    of_model = verdicts[one.response["prompt"]][one.criterion["text"]][_short(one.response["model"])]
    verdict = of_model[USUAL_APPROACHES.index(one.judge.approach)]
    return [_reply(number) for number in (verdict if isinstance(verdict, list) else [verdict])]


def _reply(number: float | None) -> str:
    if number is None:
        return "This reply was invented for the demo, as one that names no class."
    return (
        "<reflection>This verdict was invented for the demo. No judge was asked.</reflection>\n"
        f"<classification>{_CLASS_OF[number]}</classification>"
    )


def _played(episode: Episode, texts: Sequence[str]) -> EpisodeResult:
    """The episode, answered with the texts, of which none may be left over."""
    played, left = EpisodeResult(), list(texts)
    while (request := episode.next(played.responses)) is not None:
        played.responses.append(
            Response(
                request_key=request.key,
                prompt_id=request.prompt_id,
                model=request.model.name,
                model_variant=request.model.variant,
                draw=request.draw,
                snapshot=request.snapshot,
                text=left.pop(0),
                finish_reason="stop",
                served_model=SERVED,
                fingerprint=None,
                prompt_tokens=None,
                completion_tokens=None,
                cost_usd=None,
                latency_s=0.0,
                attempts=1,
                answered_at=WRITTEN_AT,
                role=request.role,
            )
        )
    if left:
        raise ValueError(f"{episode}: nobody asks for {left}")
    return played


def _short(model: str) -> str:
    return model.removeprefix(_PROVIDER)


def main(path: Path) -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        store = ResponseStore(Path(folder) / "responses.sqlite")
        store.add(stored_responses())
        print(export_responses(store, path), "responses in", path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "stored_responses.jsonl")
