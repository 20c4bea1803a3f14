"""Judgements of invented judges who may favour models of their own maker, in prompts that hang together."""

from __future__ import annotations

import numpy as np
import pandas as pd

MAKERS = {"a1": "A", "a2": "A", "b1": "B", "c1": "C", "ja": "A", "jb": "B", "jd": "D"}


def judged_world(rng: np.random.Generator, *, prompts: int = 40, gamma: float = 0.0, missing: float = 0.05) -> pd.DataFrame:
    """Each prompt has 1 to 10 criteria; how strict a judge is differs by prompt, and by the model in a prompt. Scores are classes."""
    models = [name for name in MAKERS if not name.startswith("j")]
    sizes = np.minimum(1 + rng.geometric(0.35, prompts), 10)
    prompt = np.repeat(np.arange(prompts), sizes)
    frame = pd.DataFrame({"prompt": prompt, "position": np.concatenate([np.arange(size) for size in sizes])})
    frame = frame.merge(pd.DataFrame({"model": models, "place": range(len(models))}), how="cross")
    level = rng.normal(2.4, 1, len(frame)) + rng.normal(0, 0.6, prompts)[frame["prompt"]]
    parts = []
    for at, judge in enumerate(("ja", "jb", "jd")):
        of_response = rng.normal(0, 0.4, (prompts, len(models)))[frame["prompt"], frame["place"]]
        strict = rng.normal(0.2 * at, 0.5, prompts)[frame["prompt"]] + of_response
        own = frame["model"].map(MAKERS) == MAKERS[judge]
        felt = level + strict + 4 * gamma * own + rng.normal(0, 0.5, len(frame))
        parts.append(frame.assign(judge=f"standard({judge})", judge_model=judge, score=np.clip(np.round(felt), 0, 4) / 4))
    made = pd.concat(parts, ignore_index=True).assign(
        blueprint="b", snapshot="base", temperature=0.0, system_index=0, draw=0, block="should", path=None, judge_draw=0
    )
    strings = {name: f"openrouter/{maker}/{name}" for name, maker in MAKERS.items()}
    made["model_variant"], made["judge_variant"] = made["model"].map(strings), made["judge_model"].map(strings)
    made["prompt"] = "p" + made["prompt"].astype(str)
    made.loc[rng.random(len(made)) < missing, "score"] = np.nan
    return made
