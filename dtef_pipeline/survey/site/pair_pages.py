"""Predicted and observed answers: the data that pages load, and the section that shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from scipy.special import ndtri

from dtef_pipeline.site.content import Block, Column, DataFile, Section, Table, TemplateBlock
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.site.contents import QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, PAIRS, Series, shares
from dtef_pipeline.survey.site.texts import PairSample, Place, ResponseText, Texts
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.number_words import format_count

MAX_CODE_CHARACTERS = 40_000_000
"""Maximum length of the codes of all predictions on the site; beyond it settings are left out, those of the first leaderboard last."""
_MODELS_SAMPLED = 5
"""Maximum number of models of a pair that the page itself shows, the best first, with one response."""
SHARED_DATA = "survey/pairs.js"
SCRIPT = "survey.js"
PAIRS_GUIDE = (
    "The table shows observed and predicted shares of answers. Below an observed share is its 95% interval for a sample of that size "
    "(Wilson): a prediction inside the interval may be exactly right. For a model with several draws, the shares are the mean of the "
    "readable draws and the score is the mean of all draws."
)


@dataclass(frozen=True)
class PairPages:
    """The data of predictions, and the pairs that have texts."""

    contents: SurveyContents
    series: Sequence[Series]
    sample: PairSample
    texts: Texts

    @cached_property
    def shown_series(self) -> list[int]:
        """The places of the series on the site: those of as many settings as fit."""
        sizes = dict(
            self.contents.connection.execute(f"SELECT series, sum(length(code)) FROM {ANSWERS} GROUP BY series").fetchall()
        )
        places, total = list[int](), 0
        for setting in self.contents.settings:
            setting_places = [at for at, series in enumerate(self.series) if series.setting == setting and at in sizes]
            total += sum(sizes[at] for at in setting_places)
            if total > MAX_CODE_CHARACTERS and places:
                break
            places += setting_places
        return places

    def section(self, fixed: SegmentPage | QuestionPage) -> Section:
        """Return the section of a segment's or question's page in which the reader selects the other."""
        kind = "segment" if isinstance(fixed, SegmentPage) else "question"
        settings = {self.series[place].setting for place in self.shown_series}
        n_missing = len(self.contents.settings) - len(settings)
        first = self._first_requested[kind].get(fixed.place)
        notes = [
            "" if first is not None else f"No model was asked about this {kind}: the table has baselines only.",
            f"{format_count(n_missing, 'setting')} with less context or fewer models omitted." if n_missing > 0 else "",
            self.sample.words,
        ]
        segment_list = ",".join(map(str, self._segments_by_question.get(fixed.place, ()))) if kind == "question" else ""
        part = TemplateBlock(
            "survey/pairs.html.j2",
            {
                "data": SHARED_DATA,
                "what": kind,
                "place": fixed.place,
                "asked": segment_list,
                "first": "" if first is None else first,
                "notes": list(filter(None, notes)),
                "sample": self._sample(kind, fixed.place),
            },
        )
        return Section("pairs", "Predicted and observed shares", [part], guide=PAIRS_GUIDE)

    def _sample(self, kind: str, place: int) -> list[Block]:
        """Return a pair of the page that is readable without scripts: shares of answers, and one model's response."""
        pair = self._samples[kind].get(place)
        if pair is None:
            return []
        rows, options = self._sample_rows[pair], list(self.contents.questions.values())[pair[1]].options
        columns = [Column("who", "Answer of"), Column("score", "Score", "score")]
        columns += [Column(f"o{number}", option, "percent") for number, option in enumerate(options)]
        caption = (
            f"{list(self.contents.segments.values())[pair[0]].label}: {list(self.contents.questions.values())[pair[1]].title}"
        )
        responses = self.texts.get(pair, ())[:1]
        items = [{"about": f"{self.series[r.series].name}, snapshot {r.snapshot}", "words": r.words} for r in responses]
        texts = (
            [TemplateBlock("survey/response.html.j2", {"prompt": responses[0].prompt, "responses": items, "link": None})]
            if responses
            else []
        )
        return [Table(caption, columns, rows), *texts]

    @cached_property
    def _samples(self) -> dict[str, dict[int, Place]]:
        """A random pair for each segment and each question, with texts if any has them."""
        places = self.contents.connection.execute(
            f"SELECT s, q FROM {PAIRS} ORDER BY md5('{SEED}/' || s || '/' || q)"
        ).fetchall()
        places.sort(key=lambda pair: pair not in self.texts)
        return {"segment": {s: (s, q) for s, q in reversed(places)}, "question": {q: (s, q) for s, q in reversed(places)}}

    @cached_property
    def _sample_rows(self) -> dict[Place, list[dict[str, Any]]]:
        """The observed answer of each of these pairs, then each model's prediction in the setting of the first leaderboard, the best first."""
        places = {pair for samples in self._samples.values() for pair in samples.values()}
        self.contents.connection.register("_sampled", pd.DataFrame(sorted(places), columns=["s", "q"]))
        models = [
            i for i in self.shown_series if self.series[i].setting == self.contents.main and not self.series[i].is_reference
        ]
        best = "ORDER BY score DESC, series"
        rows = self.contents.connection.execute(
            f"""
            SELECT s, q, observed, names, scores, codes FROM {PAIRS} SEMI JOIN _sampled USING (s, q) LEFT JOIN (
                SELECT s, q, list(series {best}) AS names, list(score {best}) AS scores, list(code {best}) AS codes
                FROM {ANSWERS} SEMI JOIN _sampled USING (s, q) WHERE list_contains({models}, series) GROUP BY s, q
            ) USING (s, q)
            """
        ).fetchall()
        return {
            (s, q): [
                {"who": "Observed", **_option_cells(shares(observed))},
                *(self._answer_row(*item) for item in zip(*(part[:_MODELS_SAMPLED] for part in lists if part), strict=True)),
            ]
            for s, q, observed, *lists in rows
        }

    def _answer_row(self, place: int, score: float | None, code: str) -> dict[str, Any]:
        answer_shares = [] if code.startswith("!") else shares(code.partition("*")[0])[:-1]
        return {"who": self.series[place].name, "score": score, **_option_cells(answer_shares)}

    def is_asked(self, fixed: SegmentPage | QuestionPage) -> bool:
        """Return whether a model was asked about it."""
        return fixed.place in self._first_requested["segment" if isinstance(fixed, SegmentPage) else "question"]

    @cached_property
    def _first_requested(self) -> dict[str, dict[int, int]]:
        """By segment the first question that a model was asked there, and by question the first such segment; pairs with texts come first."""
        of_models = [at for at in self.shown_series if not self.series[at].is_reference]
        firsts = {}
        for kind, fixed, partner in (("segment", "s", "q"), ("question", "q", "s")):
            query = f"SELECT {fixed}, min({partner}) FROM {ANSWERS} WHERE list_contains({of_models}::INTEGER[], series) GROUP BY {fixed}"
            first = dict(self.contents.connection.execute(query).fetchall())
            pairs = (
                sorted(self.texts, reverse=True) if kind == "segment" else [(q, s) for s, q in sorted(self.texts, reverse=True)]
            )
            firsts[kind] = {**first, **dict(pairs)}
        return firsts

    @cached_property
    def _segments_by_question(self) -> dict[int, list[int]]:
        """The segments of each question."""
        return dict(self.contents.connection.execute(f"SELECT q, list(s ORDER BY s) FROM {PAIRS} GROUP BY q").fetchall())

    def files(self) -> Iterator[DataFile]:
        """Yield the data that all pages share, then a file for each segment, and its texts."""
        yield DataFile(SHARED_DATA, self._build_shared_data())
        texts = defaultdict[int, dict[int, Sequence[ResponseText]]](dict)
        for (s, q), responses in self.texts.items():
            texts[s][q] = responses
        for segment in self.contents.segments.values():
            yield DataFile(
                build_data_path(segment), {"pairs": self._build_pairs(segment), "texts": sorted(texts[segment.place])}
            )
            if texts[segment.place]:
                yield DataFile(build_texts_path(segment), self._build_texts(texts[segment.place]))

    def _build_shared_data(self) -> dict[str, Any]:
        return {
            "segments": [[s.label, build_data_path(s), build_texts_path(s), s.path] for s in self.contents.segments.values()],
            "questions": [[q.round, q.text, q.options, q.path] for q in self.contents.questions.values()],
            "series": [
                [series.name, self.contents.settings.index(series.setting), series.is_reference]
                for series in map(self.series.__getitem__, self.shown_series)
            ],
            "settings": [[self.contents.title(setting), "/".join(setting)] for setting in self.contents.settings],
            "statuses": [status.replace("_", " ") for status in STATUSES],
            "z": float(ndtri((1 + CONFIDENCE) / 2)),
        }

    def _build_pairs(self, segment: SegmentPage) -> list[list[Any]]:
        """Return for each question its place, respondents, the size for intervals, thousandths of ceiling and marginal, whether it defines
        the segment, the observed answer, and a code for each series, empty if there is none.
        """
        rows = self.contents.connection.execute(
            f"""
            SELECT q, n, coalesce(n_effective, n), 1000 * ceiling, 1000 * others, circular, observed, places, codes FROM {PAIRS} JOIN (
                SELECT q, list(series ORDER BY series) AS places, list(code ORDER BY series) AS codes FROM {ANSWERS} WHERE s = ? GROUP BY q
            ) USING (q) WHERE s = ? ORDER BY q
            """,
            [segment.place, segment.place],
        ).fetchall()
        pairs = []
        for q, *numbers, circular, observed, places, codes in rows:
            code_by_series = dict(zip(places, codes, strict=True))
            values = [None if pd.isna(number) else round(number) for number in numbers]
            pairs.append(
                [q, *values, int(circular), observed, [code_by_series.get(series, "") for series in self.shown_series]]
            )
        return pairs

    def _build_texts(self, question_texts: Mapping[int, Sequence[ResponseText]]) -> dict[str, Any]:
        """Return each prompt once, and each question's responses: place of the series, of the prompt, words, status, reason, snapshot,
        draw.
        """
        prompts, place = dict[str, int](), {series: place for place, series in enumerate(self.shown_series)}
        responses = {
            str(q): [
                [place[text.series], prompts.setdefault(text.prompt, len(prompts)), *text[2:]]
                for text in texts
                if text.series in place
            ]
            for q, texts in question_texts.items()
        }
        return {"prompts": list(prompts), "said": responses}


def _option_cells(option_shares: Sequence[float]) -> dict[str, float]:
    return {f"o{number}": share for number, share in enumerate(option_shares)}


def build_data_path(segment: SegmentPage) -> str:
    return f"{segment.path.removesuffix('.html')}.js"


def build_texts_path(segment: SegmentPage) -> str:
    return f"{segment.path.removesuffix('.html')}-texts.js"
