"""Cases, judges and responses for the tests of judging."""

from __future__ import annotations

import re

from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case, Turn
from tests.made.responses import response

ANSWER_AND_BATTERY_COLUMNS = "Is tap water safe to drink in Oslo?"
CRITERIA = ("Says that it is safe.", "Names a source.", "Mentions the season.")
CASE = Case("Yes, it is.", CRITERIA[0], (Turn("system", "Be brief."), Turn("user", ANSWER_AND_BATTERY_COLUMNS)), CRITERIA)
MODELS = load_models("collections: {judges: [mini]}\nmodels: {mini: {model: openai/mini}, big: {model: openai/big}}")
MINI = ModelSpec(name="mini", model="openai/mini", max_tokens=2048)
JUDGE = JudgeConfig("standard", MINI)
GOOD = "<reflection>It says so.</reflection>\n<classification>CLASS_MAJORLY_MET</classification>"


def replied(request: Request, text: str, **changed: object) -> Response:
    """What is stored when the judge writes this."""
    known = {"request_key": request.key, "prompt_id": request.prompt_id, "role": "judge", "text": text}
    return response(0, **{**known, **changed})


def blocks_of(tag: str, text: str) -> list[str]:
    """What stands in each block of the tag, in the order of the text."""
    return re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
