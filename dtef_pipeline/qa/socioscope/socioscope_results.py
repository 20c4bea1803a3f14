"""Results of the documented command: every question with its scored answers, and the averages per transcript.

Source: the evaluation framework of Socioscope, "Main Workflow".
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from dtef_pipeline.qa.item_files.item_log import FileAnswer
from dtef_pipeline.qa.model import ItemError, ItemScore, QaItem, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.scorers import find_scorer, make_unscored_scorer
from dtef_pipeline.qa.transcripts.corpus import Corpus
from dtef_pipeline.qa.transcripts.quotations import (
    CheckedCitation,
    check_citations,
    compute_pooled_existence,
    read_named_source,
)

_CITATION_FIELDS = ("source_index", "quote", "exact", "relaxed", "reason")
INDEX_WRITTEN = "source_index_written"
"""The invalid value given as the number of a source, as JSON; null: the number is valid."""


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One answer to a question with its score."""

    item_id: str
    text: str | None
    score: ItemScore
    citations: tuple[Mapping[str, Any], ...] = ()
    """Citations, each with source_index, quote, exact, relaxed and reason."""
    source: str | None = None
    """The answer's transcript in its file, used if the question names none; None: unknown."""


@dataclass(frozen=True, slots=True)
class SocioscopeResults:
    """The questions and their answers, in the order of the file."""

    items: tuple[QaItem, ...]
    answers: tuple[ScoredAnswer, ...]

    def scores(self) -> TranscriptAverages:
        """Return the mean score per transcript and over all questions, 0-1, higher is better. Answers to one question are averaged
        first."""
        return self._compute_averages(lambda answers: compute_mean_of_scores([answer.score.score for answer in answers]).value)

    def existence(self) -> TranscriptAverages:
        """Return the mean share of quotations found in their source, per transcript and over all, 0-1, with one value per question."""
        return self._compute_averages(_compute_existence)

    def select_answers_of_item(self, item: QaItem) -> list[ScoredAnswer]:
        """Return the answers to a question."""
        return [answer for answer in self.answers if answer.item_id == item.item_id]

    def document(self) -> dict[str, Any]:
        """Return everything as JSON values: `qa_pairs` in the documented form, and both averages."""
        return {
            "qa_pairs": [self._build_pair(item) for item in self.items],
            "averages": {"score": _describe_averages(self.scores()), "existence_score": _describe_averages(self.existence())},
        }

    def _compute_averages(self, value: Callable[[Sequence[ScoredAnswer]], float | None]) -> TranscriptAverages:
        """Average a value per answer first over the answers to each item, then over items and by transcript."""
        table: dict[str | None, list[float | None]] = defaultdict(list)
        items = []
        for item in self.items:
            if answers := self.select_answers_of_item(item):
                items.append(value(answers))
                for name, group in _group_by_transcript(item, answers).items():
                    table[name].append(value(group))
        return compute_transcript_averages(table, items)

    def _build_pair(self, item: QaItem) -> dict[str, Any]:
        question = {"text": item.text, "type": item.type, "metric": item.reference}
        answers = self.select_answers_of_item(item)
        transcripts = list(_group_by_transcript(item, answers)) or [_find_evidence(item)]
        return {
            "id": item.item_id,
            "transcript": transcripts[0] if len(transcripts) == 1 else None,
            "question": {**question, **({"options": list(item.options)} if item.options else {})},
            "answers": [_describe_answer(answer) for answer in answers],
            "existence_score": _compute_existence(answers),
        }


def score_given_answers(
    items: Sequence[QaItem], answers: Iterable[FileAnswer], corpus: Corpus, settings: ScorerSettings
) -> list[ScoredAnswer]:
    """Score the answers in the file of questions, and look up their quotations.

    A quotation names a document of the answer's own context; without such a context, a transcript of the corpus by its place.
    """
    by_id = {item.item_id: item for item in items}
    rows = []
    for answer in answers:
        if (item := by_id.get(answer.item_id)) is not None:
            context = answer.context or [{"page_content": transcript.text} for transcript in corpus.transcripts]
            pairs = zip(check_citations(context, answer.citations), answer.citations, strict=True)
            quotes = tuple(_describe_citation(citation, read_named_source(raw)) for citation, raw in pairs)
            rows.append(ScoredAnswer(item.item_id, answer.text, _score(item, answer.text, settings), quotes, answer.source))
    return rows


def _group_by_transcript(item: QaItem, answers: Sequence[ScoredAnswer]) -> dict[str | None, list[ScoredAnswer]]:
    """Group the answers to an item by the transcript of its evidence, else by the transcript that each answer names; None without either."""
    evidence = _find_evidence(item)
    groups: dict[str | None, list[ScoredAnswer]] = defaultdict(list)
    for answer in answers:
        groups[evidence or answer.source or None].append(answer)
    return groups


def _find_evidence(item: QaItem) -> str | None:
    return item.cluster if item.cluster != item.item_id else None


def _compute_existence(answers: Sequence[ScoredAnswer]) -> float | None:
    return compute_pooled_existence([int(citation["exact"]) for citation in answer.citations] for answer in answers)


def _score(item: QaItem, text: str | None, settings: ScorerSettings) -> ItemScore:
    scorer = find_scorer(item.type)
    if scorer is None:
        return make_unscored_scorer(item.type)(WrittenResponse(text))
    try:
        return scorer.prepare_item(item.reference, item.options, settings)(WrittenResponse(text))
    except ItemError as error:
        return ItemScore("unscorable", reason=str(error))


def _describe_citation(citation: CheckedCitation, source: Any) -> dict[str, Any]:
    fields = {name: getattr(citation, name) for name in _CITATION_FIELDS}
    return {**fields, INDEX_WRITTEN: json.dumps(source, default=str) if citation.source_index is None else None}


def _describe_answer(answer: ScoredAnswer) -> dict[str, Any]:
    score, citations = answer.score, [dict(citation) for citation in answer.citations]
    source = {} if answer.source is None else {"source": answer.source}
    result = {"score": score.score, "status": score.status, "read_by": score.read_by, "flags": list(score.flags)}
    return {"answer": answer.text, **source, **result, "reason": score.reason, **score.details, "citations": citations}


def _describe_averages(means: TranscriptAverages) -> dict[str, Any]:
    return {
        "micro": means.micro.value,
        "macro": means.macro.value,
        "n_transcripts": means.macro.n_scored,
        "n": means.micro.n_scored,
        "n_skipped": means.micro.n_skipped,
        "transcripts": {name: _describe_mean(mean) for name, mean in means.transcripts.items()},
        "without_transcript": _describe_mean(means.without_transcript),
    }


def _describe_mean(mean: MeanOfScores) -> dict[str, Any]:
    return {"mean": mean.value, "n": mean.n_scored, "n_skipped": mean.n_skipped}


@dataclass(frozen=True, slots=True)
class MeanOfScores:
    """A mean with its number of values."""

    value: float | None
    """None: no score."""
    n_scored: int
    n_skipped: int
    """Number of null scores."""


@dataclass(frozen=True, slots=True)
class TranscriptAverages:
    """Means per transcript and over all."""

    transcripts: Mapping[str, MeanOfScores]
    micro: MeanOfScores
    """Mean over items, so that a transcript weighs by its items."""
    macro: MeanOfScores
    """Mean over transcripts that have a mean; `n_skipped`: number of transcripts with nulls only."""
    without_transcript: MeanOfScores
    """Mean over items without a transcript, which count only in `micro`."""


def compute_mean_of_scores(scores: Sequence[float | None]) -> MeanOfScores:
    """Return the mean of the values that are not null; null if all are."""
    values = [score for score in scores if score is not None]
    return MeanOfScores(fsum(values) / len(values) if values else None, len(values), len(scores) - len(values))


def compute_transcript_averages(
    scores: Mapping[str | None, Sequence[float | None]], items: Sequence[float | None] | None = None
) -> TranscriptAverages:
    """Compute the means of scores, 0-1, per transcript and over all of them; a null is not scored, but its transcript is still listed.

    `scores`: by transcript, one per item; None: without a transcript. `items`: one score per item, if an item can belong to several
    transcripts; None: `scores` have each item once.
    """
    means = {name: compute_mean_of_scores(values) for name, values in scores.items() if name is not None}
    every = [score for values in scores.values() for score in values] if items is None else items
    macro = compute_mean_of_scores([mean.value for mean in means.values()])
    return TranscriptAverages(means, compute_mean_of_scores(every), macro, compute_mean_of_scores(scores.get(None, ())))
