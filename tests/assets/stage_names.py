"""The stages of each family, in order, by the names of their assets."""

STAGE_NAMES = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "drift_checks"]
QA_STAGE_NAMES = ["qa_items", "qa_prompts", "qa_responses", "qa_judgements", "qa_executions", "qa_scores"]
GAMES_STAGE_NAMES = ["scenario_items", "episode_prompts", "episodes", "episode_scores"]
RUBRIC_STAGE_NAMES = [
    f"rubric_{name}" for name in ("blueprints", "responses", "judgements", "embeddings", "points", "scores", "summaries")
]
