"""Tables whose every text would be markup, a script or a turn of the direction of writing, were it not escaped."""

from __future__ import annotations

import pandas as pd

from tests.made.rubric_pages import HOSTILE, RubricTables, made_tables

LINKS = "\n\n".join(
    (
        "[a](javascript:window.hacked=3) ![b](javascript:window.hacked=4) <javascript:window.hacked=5> [c](JAVASCRIPT&colon;window.hacked=6)",
        "[d](data:text/html;base64,PHNjcmlwdD4=) ![e](data:image/svg+xml,<svg/onload=window.hacked=7>) [f](//evil.example) [g](file:///etc)",
        '[h](https://a.org/"onmouseover="window.hacked=8") ![i](https://a.org/p.png) <svg onload=window.hacked=9>',
        f"{'> ' * 12}deep **bold** [j](https://a.org/k)",
    )
)
"""Markdown whose links and images would run or load something."""


def with_summary(made: RubricTables, text: str) -> RubricTables:
    key = {"blueprint": "health__topic-0", "snapshot": "base", "analyst": "gemini"}
    findings = [{"kind": "key_finding", "text": text}, {"kind": "weakness", "text": "Few warn."}]
    made.extra["rubric_summaries"] = pd.DataFrame([{**key, "status": "ok", "reason": None, "findings": findings, "share": 0.5}])
    made.extra["rubric_grades"] = pd.DataFrame(
        [{**key, "model": "openai/model-1", "dimension": "clarity", "grade": 8.5, "reasoning": text}]
    )
    return made


def hostile_tables() -> RubricTables:
    made = with_summary(made_tables(1, 2, 3, systems=(None, HOSTILE), words=HOSTILE), HOSTILE)
    ids = {
        "health__topic-0": f"health{HOSTILE}",
        "prompt-0": HOSTILE,
        "openai/model-0": f"m{HOSTILE}",
        "openai/model-0[temperature=0]": "v",
    }
    for rows in made.rows.values():
        for row in rows:
            for name, value in list(row.items()):
                if isinstance(value, str) and value in ids and name not in ("path",):
                    row[name] = ids[value]
                elif (
                    name
                    in ("title", "description", "citation", "judge", "reason", "error", "explanation", "raw", "served_model")
                    and value
                ):
                    row[name] = [HOSTILE] if isinstance(value, list) else f"{HOSTILE}{value}"
            for name in ("code", "place", "run_hash", "policy"):
                if isinstance(row.get(name), str):
                    row[name] = HOSTILE
            if "ideal" in row:
                row |= {"description": f"{HOSTILE}\n\n{LINKS}"}
            if row.get("text") and "served_model" in row:
                row["text"] = f"{row['text']}\n\n{LINKS}"
            if "tags" in row:
                row |= {"tags": [HOSTILE], "references": [HOSTILE, "javascript:alert(1)", 'https://x.org/"onclick="alert(1)']}
    for rows in made.extra.values():
        rows["blueprint"] = f"health{HOSTILE}"
    return made
