"""Predicted and observed answers: the data that pages load, and the section that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pandas as pd
from scipy.special import ndtri

from dtef_pipeline.site.content import Block, DataFile, Section, TemplateBlock
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE
from dtef_pipeline.survey.site.contents import GUIDES, SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, PAIRS
from dtef_pipeline.survey.site.texts import Place, ResponseText, Texts, show_pair
from dtef_pipeline.tables import STATUSES

Kind = Literal["segment", "question"]
_MODELS_SAMPLED = 5
"""Maximum number of models of a pair that the page itself shows, the best first, with one response."""
SHARED_DATA = "survey/pairs.js"
SCRIPT = "survey.js"


@dataclass(frozen=True)
class PairPages:
    """The data of predictions, and the pairs that have texts."""

    contents: SurveyContents
    texts: Texts
    note: str
    """Says which pairs have texts; empty if all have."""

    def section(self, kind: Kind, place: int) -> Section:
        """Return the section of a segment's or question's page in which the reader selects the other."""
        pair = self._openings[kind].get(place)
        values = {
            "data": SHARED_DATA,
            "what": kind,
            "place": place,
            "asked": "" if kind == "segment" else ",".join(map(str, self._segments_by_question.get(place, ()))),
            "first": "" if pair is None else pair[kind == "segment"],
            "note": self.note,
            "sample": [] if pair is None else self._samples[pair],
        }
        template = TemplateBlock("survey/pairs.html.j2", values)
        return Section("pairs", "Predicted and observed shares", [template], guide=write_sentence(GUIDES, "pairs"))

    @cached_property
    def _segments_by_question(self) -> dict[int, list[int]]:
        return dict(self.contents.query(f"SELECT q, list(s ORDER BY s) FROM {PAIRS} GROUP BY q"))

    @cached_property
    def _openings(self) -> dict[Kind, dict[int, Place]]:
        """By segment and by question, the pair that its page opens with: if possible one with texts, or that a model was asked."""
        rows = self.contents.query(f"""
            SELECT s, q, bool_and(is_reference) FROM {ANSWERS} JOIN site_series USING (series) SEMI JOIN {PAIRS} USING (s, q)
            GROUP BY s, q ORDER BY q, s
            """)
        last_first = sorted(rows, key=lambda row: (row[:2] not in self.texts, row[2]))[::-1]
        return {"segment": {s: (s, q) for s, q, _ in last_first}, "question": {q: (s, q) for s, q, _ in last_first}}

    @cached_property
    def _samples(self) -> Mapping[Place, Sequence[Block]]:
        """What pages show of each pair in `_openings` without scripts: the best predictions on the first leaderboard, and a response."""
        places = {pair for pairs in self._openings.values() for pair in pairs.values()}
        self.contents.connection.register("site_places", pd.DataFrame(sorted(places), columns=["s", "q"]))
        rows = self.contents.query(f"""
            SELECT s, q, any_value(observed), coalesce(list([name, code] ORDER BY score DESC, series) FILTER (
                NOT is_reference AND list_contains({self.contents.main_series}, series) AND NOT starts_with(code, '!')
            ), []) FROM {ANSWERS} JOIN site_series USING (series) JOIN {PAIRS} USING (s, q) SEMI JOIN site_places USING (s, q) GROUP BY s, q
            """)
        return {
            (s, q): show_pair(self.contents, (s, q), observed, answers[:_MODELS_SAMPLED], self.texts.get((s, q), ())[:1])
            for s, q, observed, answers in rows
        }

    def files(self) -> Iterator[DataFile]:
        """Yield the data that all pages share, then a file for each segment, and its texts."""
        contents = self.contents
        shared = {
            "segments": [[s.label, s.page] for s in contents.segments],
            "questions": [[q.round, q.text, q.options, q.page] for q in contents.questions],
            "series": [[s.name, contents.settings.index(s.setting), s.is_reference] for s in self.contents.series],
            "settings": [[contents.title(setting), "/".join(setting)] for setting in contents.settings],
            "statuses": [status.replace("_", " ") for status in STATUSES],
            "z": float(ndtri((1 + CONFIDENCE) / 2)),
        }
        yield DataFile(SHARED_DATA, shared)
        for segment in contents.segments:
            path = segment.page.removesuffix(".html")
            texts = {q: responses for (s, q), responses in self.texts.items() if s == segment.s}
            yield DataFile(f"{path}.js", {"pairs": self._build_pairs(segment.s), "texts": sorted(texts)})
            if texts:
                yield DataFile(f"{path}-texts.js", _build_texts(texts))

    def _build_pairs(self, s: int) -> list[list[Any]]:
        """Return for each question its place, respondents, the size for intervals, thousandths of ceiling and marginal, whether it defines
        the segment, the observed answer, and a code for each series, empty if there is none.
        """
        thousandths = ", ".join(f"TRY_CAST(round(1000 * {name}) AS INTEGER)" for name in ("ceiling", "others"))
        rows = self.contents.query(
            f"""
            SELECT q, n, TRY_CAST(round(coalesce(n_effective, n)) AS INTEGER), {thousandths}, circular::INTEGER, observed, codes
            FROM {PAIRS} JOIN (SELECT s, q, map(list(series), list(code)) AS codes FROM {ANSWERS} WHERE s = ? GROUP BY s, q) USING (s, q)
            ORDER BY q
            """,
            s,
        )
        return [[*values, [codes.get(place, "") for place in range(len(self.contents.series))]] for *values, codes in rows]


def _build_texts(question_texts: Mapping[int, Sequence[ResponseText]]) -> dict[str, Any]:
    """Return each prompt once, and each question's responses: place of the series, of the prompt, words, status, reason, snapshot, draw."""
    prompts = dict[str, int]()
    responses = {
        str(q): [[text.series, prompts.setdefault(text.prompt, len(prompts)), *text[2:]] for text in texts]
        for q, texts in question_texts.items()
    }
    return {"prompts": list(prompts), "said": responses}
