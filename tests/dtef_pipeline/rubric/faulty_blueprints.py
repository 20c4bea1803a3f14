"""A blueprint for each finding: what is written, and where the finding is."""

from __future__ import annotations

from typing import NamedTuple


class Faulty(NamedTuple):
    """A blueprint with one finding of interest."""

    text: str
    place: str
    line: int | None
    identifier: str = "folder__file"


HEADER = "models: [openai:gpt-4o]\n---\n"


def with_prompt(*lines: str, place: str = "prompt 0", line: int = 3) -> Faulty:
    """A header, and one prompt whose first line is the third of the file."""
    return Faulty(HEADER + "\n".join(f"{'- ' if not number else '  '}{text}" for number, text in enumerate(lines)), place, line)


def with_point(*points: str, place: str = "prompt 0 should[0]", line: int = 6) -> Faulty:
    """One prompt, whose criteria begin in line 6."""
    return with_prompt("id: a", "prompt: b", "should:", *(f"  - {point}" for point in points), place=place, line=line)


def with_header(*lines: str, line: int = 1) -> Faulty:
    """A header, and one sound prompt."""
    return Faulty("\n".join([*lines, "---", "- {id: a, prompt: b, should: [c]}"]), "header", line)


ONE_OF_EACH: dict[str, Faulty] = {
    "yaml": Faulty("title: a\ndescription: b: c\n", "line 2", 2),
    "reserved-id": Faulty(HEADER + "- {id: a, prompt: b, should: [c]}", "header", None, "_pr_1__file"),
    "no-prompts": Faulty("title: a\nmodels: [openai:gpt-4o]\n", "header", 1),
    "bad-header": with_header("models: [openai:gpt-4o]", "temperatures: [0, warm]", line=2),
    "bad-prompt": with_prompt("just a text"),
    "no-prompt-text": with_prompt("id: a", "should: [b]"),
    "bad-message": with_prompt("id: a", "messages:", "- user: b", "- robot: c", place="prompt 0 messages[1]", line=6),
    "assistant-first": with_prompt("id: a", "messages: [assistant: b, user: c]", "should: [d]"),
    "nothing-to-generate": with_prompt("id: a", "messages: [user: b, assistant: c]", "should: [d]"),
    "rubric-not-a-list": with_prompt("id: a", "prompt: b", "should: be kind", place="prompt 0 should", line=5),
    "bad-point": with_point("Says what it costs: ", place="prompt 0 should[0]"),
    "text-and-function": with_point("{text: a, fn: contains, arg: b}"),
    "nested-too-deep": with_point("[[a, b], c]", place="prompt 0 should[0][0]"),
    "weight-out-of-range": with_point("a", "{text: b, weight: 0.05}", place="prompt 0 should[1]", line=7),
    "unknown-reference": with_point("$ref: nobody"),
    "unknown-collection": with_header("title: a", "models:", "- openai:gpt-4o", "- NOBODY", line=4),
    "custom-model": with_header(
        "models:", "- openai:a", "- {id: 'custom:b', url: http://b/v1/chat/completions, modelName: c, inherit: openai}", line=3
    ),
    "no-models-left": with_header("title: a", "models: [EMPTY]", line=2),
    "bad-judge": with_header(
        "models: [openai:a]",
        "evaluationConfig:",
        "  llm-coverage:",
        "    judges:",
        "    - {model: openai:b, approach: kind}",
        line=5,
    ),
    "unknown-function": with_point("$includes: b"),
    "bad-arguments": with_point("$contains: 5"),
    "bad-regex": with_point("$matches: '(a'"),
    "dollar-string": with_point("'$icontains: \"Paris\"'"),
    "duplicate-prompt-id": Faulty(
        HEADER + "- {id: a, prompt: b, should: [c]}\n- {id: a, prompt: d, should: [c]}", "prompt 1", 4
    ),
    "single-element-path": with_point("[a]"),
    "no-criteria": with_prompt("id: a", "prompt: b"),
    "consecutive-roles": with_prompt("id: a", "messages: [user: b, user: c]", "should: [d]"),
    "no-collections": with_header("title: a", "models:", "- openai:a", "- CORE", line=4),
    "empty-collection": with_header("models:", "- openai:a", "- EMPTY", line=3),
    "external-call": with_point("$factcheck: dates and places"),
    "system-and-systems": Faulty(
        "systems: [null, Be kind.]\nmodels: [openai:a]\n---\n- id: a\n  system: Be short.\n  prompt: b\n  should: [c]",
        "prompt 0",
        5,
    ),
    "temperature-twice": with_header("models: [openai:a]", "temperatures: [0, 0.0, 1]", line=2),
    "system-twice": with_header("models: [openai:a]", "system:", "- Be kind.", "- null", "- Be kind.", line=5),
    "prompt-and-messages": with_prompt("id: a", "prompt: b", "messages: [user: c]", "should: [d]"),
    "ignored-id": with_header("models: [openai:a]", "id: b", line=2),
    "no-prompt-id": with_prompt("prompt: a", "should: [b]"),
    "no-models": with_header("title: a"),
    "model-twice": with_header("title: a", "models: [openai:a, openai:a]", line=2),
    "ideal-only": with_prompt("id: a", "prompt: b", "ideal: c"),
    "unknown-key": with_prompt("id: a", "prompt: b", "shuold: [c]", "ideal: d", line=5),
    "deprecated-judges": with_header(
        "models: [openai:a]", "evaluationConfig:", "  llm-coverage:", "    judgeModels: [openai:b]", line=4
    ),
    "paths-in-both-blocks": with_prompt("id: a", "prompt: b", "should: [[c, d]]", "should_not: [[e, f]]"),
}
"""By code."""
BESIDES = {
    "bad-header": set(),
    "unknown-key": {"ideal-only"},
    "no-models-left": {"empty-collection"},
    "nested-too-deep": set(),
}
"""What else the blueprint of a code has, where it has anything else."""
