"""Blueprints of one segment: one prompt per (question or batch of questions, context level, condition)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import pyarrow as pa

from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import compute_blueprint_hash, digest, prompt_id
from dtef_pipeline.survey.blueprint import wording
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel, choose_system_prompt
from dtef_pipeline.survey.blueprint.wording import (
    People,
    build_response_schema,
    describe_form_for_system,
    describe_form_for_user,
    format_percent,
    list_lettered_options,
    list_lettered_shares,
    write_narrative,
)
from dtef_pipeline.survey.tables import BLUEPRINTS
from dtef_pipeline.text.number_words import format_count

_SEPARATOR_TOKENS = 2  # the blank line between two parts
_FROM_SURVEY = ("round", "segment", "question_id", "question_order", "options", "circular")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question of the segment, with its text as context and the tokens of this text."""

    row: Row
    kind: str  # the same for a question and its duplicates
    context: str
    context_tokens: int

    @property
    def id(self) -> str:
        return str(self.row["question_id"])


@dataclass(frozen=True, slots=True)
class _Draft:
    """A prompt with its targets but without context."""

    targets: Sequence[_Question]
    head: str
    tail: str
    tokens: int
    room: int
    """Tokens left for context; negative when the prompt does not fit even without."""


def build_blueprints(survey: pa.Table, *options: BlueprintOptions) -> pa.Table:
    """Return the blueprints of one segment, by question, context level and condition.

    `survey` has `survey_responses` rows of one (round, segment). `options` has one item per condition, or several if its context levels are
    made in several ways. Every question is a target, including circular and duplicate ones (which are flagged), except those of
    `list_left_out`. The context never contains a question of the prompt, its duplicate, or a circular question. Raises DtefError if no
    prompt is possible.
    """
    rows = sorted(survey.to_pylist(), key=lambda row: row["question_order"])
    questions: dict[tuple[str, bool, str], list[_Question]] = {}
    for choice in options:
        key = _context_key(choice)
        questions[key] = questions.get(key) or [_make_context_question(row, choice) for row in rows]
    prompts = [row for choice in options for row in _Asking(questions[_context_key(choice)], choice).rows()]
    if not prompts:
        raise DtefError(f"{rows[0]['round']}/{rows[0]['segment']}: {_explain_no_prompt(rows, options)}")
    prompts.sort(key=lambda row: (row["question_order"], ContextLevel(row["context_level"]).order, row["condition"]))
    full_hash = compute_blueprint_hash({row["prompt_id"] for row in prompts})
    columns = {name: [row.get(name) for row in prompts] for name in BLUEPRINTS.names}
    columns["blueprint_hash"] = [full_hash] * len(prompts)
    return pa.table(columns, schema=BLUEPRINTS)


def list_left_out(survey: pa.Table, blueprints: pa.Table, options: Sequence[BlueprintOptions]) -> dict[str, list[str]]:
    """Return the ids of the questions without a prompt, by condition, in survey order. Complete conditions are omitted.

    A question has no prompt if it exceeds the token budget even without context, or if the task `shift` lacks the answers of all
    respondents.
    """
    pairs = set(zip(blueprints["condition"].to_pylist(), blueprints["question_id"].to_pylist(), strict=True))
    questions = survey.sort_by("question_order")["question_id"].to_pylist()
    gaps = {c: [q for q in questions if (c, q) not in pairs] for c in dict.fromkeys(choice.condition for choice in options)}
    return {condition: missing for condition, missing in gaps.items() if missing}


def _explain_no_prompt(rows: Sequence[Row], options: Sequence[BlueprintOptions]) -> str:
    if all(choice.task == "shift" for choice in options) and not any(row["population"] for row in rows):
        return "the task shift needs the answers of all respondents, but no question of the survey has them"
    room = options[0].token_budget - options[0].reserve
    return (
        f"no question fits {format_count(room, 'token')} (token budget minus the reserve for the answer), even without context"
    )


def _context_key(options: BlueprintOptions) -> tuple[str, bool, str]:
    """Return the options on which the text of a context question depends."""
    return options.format, options.show_n, options.profile


def _make_context_question(row: Row, options: BlueprintOptions) -> _Question:
    if options.profile == "population":  # without the segment's answers and size, no prompt can show them
        row = {**row, "observed": row["population"], "n": row["population_n"], "population": None}
    people = wording.people(options.profile)
    n = f" ({row['n']} respondents)" if options.show_n and row["n"] is not None else ""
    question = f"Question: {row['question_text']}{n}"
    text = f"{question}\n{_format_answers(row, options.format, people)}" if row["observed"] else ""
    return _Question(row, row["duplicate_of"] or row["question_id"], text, estimate_tokens(text) + _SEPARATOR_TOKENS)


@dataclass(frozen=True)
class _Asking:
    """All questions of one segment in one condition."""

    questions: Sequence[_Question]
    options: BlueprintOptions

    @cached_property
    def system(self) -> str:
        options = self.options
        return choose_system_prompt(
            options.system, options.system_text, options.task, describe_form_for_system(options), options.profile
        )

    @cached_property
    def heading(self) -> str:
        has_population = any(question.row["population"] for question in self.questions)
        suffix = _BESIDE_EVERYONE[self.options.format] if has_population else ""
        return f"How {wording.people(self.options.profile).name} answered other questions of the same survey{suffix}"

    @cached_property
    def heading_tokens(self) -> int:
        return estimate_tokens(self.heading) + _SEPARATOR_TOKENS

    @cached_property
    def shared_columns(self) -> Mapping[str, Any]:
        options = self.options
        return {
            "condition": options.condition,
            "recipe": options.recipe,
            "system": self.system,
            "answer_tokens": options.answer_tokens,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield rows of `blueprints`, plus `question_order`."""
        levels = sorted(set(self.options.context_levels), key=lambda level: ContextLevel(level).order)
        for draft in self._iterate_drafts():
            yield from self._iterate_prompts_of(draft, levels)

    def _iterate_drafts(self) -> Iterator[_Draft]:
        """Yield the prompts that fit the budget at least without context."""
        questions = [q for q in self.questions if self.options.task != "shift" or q.row["population"]]
        drafts = (self._make_draft([question]) for question in questions)
        fitting = (draft for draft in drafts if draft.room >= 0)
        if self.options.task != "batch":
            yield from fitting
            return
        questions = [draft.targets[0] for draft in fitting]
        for places in split_question_batches([question.kind for question in questions], self.options.batch_size):
            yield from self._split([questions[place] for place in places])

    def _split(self, targets: Sequence[_Question]) -> Iterator[_Draft]:
        """Yield one prompt of all targets or, if it does not fit, prompts of half of them."""
        draft = self._make_draft(targets)
        if draft.room >= 0:
            yield draft
            return
        half = (len(targets) + 1) // 2
        yield from self._split(targets[:half])
        yield from self._split(targets[half:])

    def _make_draft(self, targets: Sequence[_Question]) -> _Draft:
        row, tail = targets[0].row, self._write_tail(targets)
        head = (
            wording.POPULATION_PROFILE
            if self.options.profile == "population"
            else wording.profile(row["attribute"], row["value"])
        )
        tokens = estimate_tokens(f"{self.system}\n{head}\n{tail}") + 2 * _SEPARATOR_TOKENS
        return _Draft(targets, head, tail, tokens, self.options.token_budget - self.options.reserve - tokens)

    def _write_tail(self, targets: Sequence[_Question]) -> str:
        """Return the part after the context: the question or questions, and the form of the answer."""
        row, task = targets[0].row, self.options.task
        form = describe_form_for_user(self.options, [len(target.row["options"]) for target in targets])
        if task == "batch":
            questions = [(target.row["question_text"], self._list_in_prompt_order(target.row, "options")) for target in targets]
            return f"{wording.write_target_questions(questions)}\n\n{form}"
        options = self._list_in_prompt_order(row, "options")
        question = f"Question to predict\n{row['question_text']}\n{list_lettered_options(options)}"
        if task == "shift":
            shares = list_lettered_shares(options, self._list_in_prompt_order(row, "population"))
            everyone = f"How all respondents of the survey answered the question to predict\n{shares}"
            return f"{everyone}\n\n{question}\n\n{form}"
        return f"{question}\n\n{form}"

    def _list_in_prompt_order(self, row: Row, column: str) -> list[Any]:
        """Return the values of a column with one value per option, in the prompt's order of options."""
        values = row[column]
        return [values[place] for place in self.options.order_of(len(values))]

    def _iterate_prompts_of(self, draft: _Draft, levels: Sequence[str]) -> Iterator[dict[str, Any]]:
        candidates = self._list_context_candidates(draft.targets)
        costs = list(accumulate((c.context_tokens for c in candidates), initial=self.heading_tokens))[1:]
        fitting = bisect_right(costs, draft.room)
        schema = build_response_schema(self.options, [len(target.row["options"]) for target in draft.targets])
        for level in levels:
            limit = None if level == "all" else int(level)
            n_context = min(fitting, len(candidates) if limit is None else limit)
            context_questions = candidates[:n_context]
            context = [self.heading, *(c.context for c in context_questions)] if context_questions else []
            user = "\n\n".join([draft.head, *context, draft.tail])
            prompt_columns = {
                **self.shared_columns,
                "context_level": level,
                "prompt_id": self._make_prompt_id(draft.targets, user, schema),
                "user": user,
                "response_schema": schema,
                "context_included": n_context,
                "context_question_ids": [c.id for c in context_questions],
                "tokens": draft.tokens + (costs[n_context - 1] if n_context else 0),
            }
            for place, target in enumerate(draft.targets):
                question_columns = {name: target.row[name] for name in _FROM_SURVEY}
                yield {**question_columns, **prompt_columns, "reading": self._make_reading(draft, place)}

    def _make_prompt_id(self, targets: Sequence[_Question], user: str, schema: str | None) -> str:
        limits: dict[str, Any] = {"response_schema": schema, "answer_tokens": self.options.answer_tokens}
        if self.options.task == "batch":
            return prompt_id(self.system, user, [t.id for t in targets], [t.row["options"] for t in targets], **limits)
        return prompt_id(self.system, user, targets[0].id, targets[0].row["options"], **limits)

    def _make_reading(self, draft: _Draft, place: int) -> dict[str, Any] | None:
        """Return how to read the answer to the target at this place; None for one distribution in the survey's order."""
        options, count = self.options, len(draft.targets[place].row["options"])
        order = options.order_of(count)
        individual, together = options.task == "synthetic-individuals", options.task == "batch"
        special = {
            "order": order if order != list(range(count)) else None,
            "place": place if together else None,
            "size": len(draft.targets) if together else None,
            "individuals": options.individuals if individual else None,
            "marked": True if options.reasoning == "cot" else None,
        }
        is_special = any(value is not None for value in special.values())
        return {"task": "individuals" if individual else "distribution", **special} if is_special else None

    def _list_context_candidates(self, targets: Sequence[_Question]) -> list[_Question]:
        kinds = {target.kind for target in targets}
        candidates = [q for q in self.questions if q.context and not q.row["circular"] and q.kind not in kinds]
        if self.options.selection == "random":
            # The same order for every segment of the round, so that segments are compared on the same context.
            target_ids = [t.id for t in targets] if self.options.task == "batch" else targets[0].id
            seed = int(digest(self.options.seed, targets[0].row["round"], target_ids)[:16], 16)
            return sorted(candidates, key=lambda q: digest(seed, q.id))
        return candidates


def split_question_batches(kinds: Sequence[str], size: int) -> list[list[int]]:
    """Return the indices of the questions of each batch. Each question is in exactly one batch.

    `kinds` has for each question, in survey order, a name that it shares with its duplicates; a batch has no kind twice. Batches are of
    consecutive questions and of nearly equal lengths up to `size`; for pairs of an odd number the first three are together, so that none is
    single. Duplicates move to the nearest batches with room.
    """
    lengths = _choose_lengths(len(kinds), size, max(Counter(kinds).values(), default=0))
    home = [batch for batch, length in enumerate(lengths) for _ in range(length)]
    batches: list[list[int]] = [[] for _ in lengths]
    repeats = {kind for kind, count in Counter(kinds).items() if count > 1}
    # Those that cannot go anywhere choose first.
    for place in sorted(range(len(kinds)), key=lambda place: (kinds[place] not in repeats, place)):
        free = [
            batch
            for batch, length in enumerate(lengths)
            if len(batches[batch]) < length and all(kinds[member] != kinds[place] for member in batches[batch])
        ]
        if free:
            nearest = min(free, key=lambda batch: (abs(batch - home[place]), batch))
            batches[nearest if kinds[place] in repeats else free[0]].append(place)
        else:
            batches.append([place])
    return sorted(sorted(batch) for batch in batches if batch)


def _choose_lengths(questions: int, size: int, most_repeated: int) -> list[int]:
    """Return the lengths of the batches: as few as `size` allows, none of one question if possible, and at least one per duplicate."""
    count = max(min(-(-questions // size), max(questions // 2, 1)), most_repeated)
    shortest, longer = divmod(questions, count) if count else (0, 0)
    return [shortest + (batch < longer) for batch in range(count)]


_BESIDE_EVERYONE: Mapping[str, str] = {
    "attribute-label": "",
    "distribution-context": ", with the answers of all respondents in parentheses",
    "narrative": ", and how it differs from all respondents",
}


def _format_answers(row: Mapping[str, Any], form: str, people: People) -> str:
    options, observed, population = row["options"], row["observed"], row["population"]
    if form == "narrative":
        return write_narrative(options, observed, population, people)
    if form == "distribution-context" and population:
        triples = zip(options, observed, population, strict=True)
        return list_lettered_options(
            [f"{option}: {format_percent(share)} ({format_percent(everyone)})" for option, share, everyone in triples]
        )
    return list_lettered_shares(options, observed)
