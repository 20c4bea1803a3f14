"""Whether the judgements that are stored of a run of rubrics are its own: another run of the same snapshot takes their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dtef_pipeline.api.results.run_context import RunContext
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import APPROACHES
from dtef_pipeline.rubric.judge_requests import chosen_judges, judgings
from dtef_pipeline.text.counted import counted


def judged_by_others(run: RunContext) -> str | None:
    """Which other judges were the last to judge the responses, in words; None: those of the run did, or nobody judged.

    Where the manifest names nobody, the run's own are those of the blueprint, by the models that are known now. Where these are not known any
    more, what is stored is taken for the run's own.
    """
    own, stored, scored = _own_judges(run), _stored_judges(run), _scored_by(run)
    if not own or not stored:
        return None
    if stored != own:
        return f"judged by others: what is stored is by {_in_words(stored)}, not by {_in_words(own)}"
    if scored and scored != set(own):
        return f"judged by others: the scores are by {', '.join(sorted(scored))}, not by {_in_words(own)}"
    return None


def own_judgement_keys(run: RunContext) -> set[str]:
    """The request keys of what the run's own judges said, found in the response store: their rows have gone."""
    tables = [run.rows(name) for name in ("rubric_responses", "rubric_criteria", "rubric_prompts")]
    draws = int(run.stage_config("rubric_judgements").get("judge_draws", 1))
    episodes = list(judgings(tables[0], tables[1], tables[2], _judges(run) or (), draws))
    played = play(episodes, lambda requests: {}, run.stored())
    return {response.request_key for one in played for response in one.responses}


def _judges(run: RunContext) -> tuple[JudgeConfig, ...] | None:
    """Those of the plan; None where they are not known any more."""
    config = run.stage_config("rubric_judgements")
    heads = run.rows("rubric_blueprints", ["judges"])["judges"].to_pylist()
    try:
        return chosen_judges(
            config.get("judges", ()), (heads[0] or ()) if heads else (), run.models, config.get("scale", USUAL_SCALE)
        )
    except ConfigError:
        return None


def _own_judges(run: RunContext) -> Mapping[str, int]:
    """By the name of each judge, how often it was to judge."""
    draws = int(run.stage_config("rubric_judgements").get("judge_draws", 1))
    return dict.fromkeys((one.name for one in _judges(run) or ()), draws)


def _stored_judges(run: RunContext) -> Mapping[str, int]:
    rows = run.rows("rubric_judgements", ["judge", "judge_draw"]).group_by(["judge", "judge_draw"]).aggregate([])
    return Counter(rows["judge"].to_pylist())


def _scored_by(run: RunContext) -> set[str]:
    """Names of the judges that the scores were made by."""
    found: Iterable[Sequence[str]] = run.rows("rubric_runs", ["judges"])["judges"].to_pylist()
    return {name for names in found for name in names if name.partition("(")[0] in APPROACHES}


def _in_words(judges: Mapping[str, int]) -> str:
    return ", ".join(name if draws == 1 else f"{name} in {counted(draws, 'draw')}" for name, draws in sorted(judges.items()))
