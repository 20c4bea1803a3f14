"""Surveys in which the same people answer every question, of worlds whose truth is known: what the published numbers are checked against.

A **world** is fixed: its segments, and how their people differ. A **survey** of it draws new people and new questions (in batteries), and models
that answer them. Answers follow a factor model: a person's standing on a few common factors moves all of their answers, so that a sample which
happens to hold unusual people is unusual in every question, and segments differ along the same factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr, ndtri

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW = (15, 20, 25, 30, 40, 60, 110)
COUNTRIES = (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 29, 30, 33, 36, 40, 47, 60, 80, 105, 185)
"""Respondents of 27 countries, as of the listed ones of a public round."""
SINGLE = (1,) * 40
_FACTORS = 2


@dataclass(frozen=True)
class Errors:
    """How far a model is off, as standard deviations of log odds: on a question in all segments alike, and in one segment alone."""

    shared: float
    cell: float


TYPICAL, GOOD = Errors(0.35, 0.18), Errors(0.12, 0.08)


@dataclass(frozen=True)
class Design:
    """A kind of survey.

    `batteries`: questions of each. `countries`: respondents of each; age and gender of everyone are drawn. `common`: share of the variance of a
    person's standing on a question that the common factors make. `country`, `group`: standard deviation of a country's and of an age group's
    or gender's mean on them. `own`: of a segment's mean on each question besides. `alike`: share of what questions have in common within a
    battery (truths, factors, errors). `options`: numbers of options to choose from; `flat`: how even the answers are (log odds, smaller is
    more even). `skewed`: degrees of freedom of the models' errors, None: normal. `asked`: share of the cells that each model is asked.
    `draws` of each, of which `unread` cannot be read: one share, or one for each model; in every second segment it is more by `uneven` of it, in
    the others less. `dont_know`: mean share of a last option that has no place on the scale.
    `other_people`: every question has people of its own (a control, easier than any real survey).
    """

    batteries: tuple[int, ...] = SINGLE
    countries: tuple[int, ...] = FEW
    ages: int = 3
    genders: int = 2
    common: float = 0.31
    country: float = 0.65
    group: float = 0.26
    own: float = 0.12
    alike: float = 0.6
    options: tuple[int, ...] = (2, 3, 4, 4, 5, 5, 6)
    flat: float = 0.9
    rare: bool = False
    skewed: float | None = None
    asked: float = 1.0
    draws: int = 1
    unread: float | Mapping[str, float] = 0.0
    uneven: float = 0.0
    dont_know: float = 0.0
    other_people: bool = False
    models: Mapping[str, Errors] = field(default_factory=lambda: {"m0": TYPICAL, "m1": TYPICAL, "good": GOOD})

    @property
    def questions(self) -> int:
        return sum(self.batteries)


@dataclass(frozen=True)
class Survey:
    """One survey. Arrays are (questions, segments, options), with zeros after a question's last option."""

    k: Ints  # (questions,) options
    battery: Ints  # (questions,)
    n: Ints  # (segments,)
    answers: Ints  # (people, questions) from 0
    truth: Floats
    observed: Floats
    predicted: Mapping[str, Floats]  # (draws, questions, segments, options)
    read: Mapping[str, npt.NDArray[np.bool_]]  # (draws, questions, segments): could be parsed
    asked: Mapping[str, npt.NDArray[np.bool_]]  # (questions, segments)
    round: str
    number: Ints  # (questions,): equal for one question of several rounds


class World:
    """Segments whose people differ as they always will; `survey` asks new people new questions."""

    def __init__(self, design: Design, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.design = design
        kinds = (len(design.countries), design.ages, design.genders)
        self.names = [
            f"{attribute}:{attribute}{value}"
            for attribute, many in zip(("country", "age", "gender"), kinds, strict=True)
            for value in range(many)
        ]
        self.kinds = kinds
        spreads = np.repeat([design.country, design.group, design.group], kinds)
        means = rng.normal(size=(len(self.names), _FACTORS)) * spreads[:, None]
        self.means = means - np.concatenate([np.repeat(part.mean(axis=0)[None], len(part), 0) for part in self._by_kind(means)])
        # Age and gender of the people of each country.
        self.ages = rng.dirichlet(np.full(design.ages, 40.0), size=kinds[0])
        self.genders = rng.dirichlet(np.full(design.genders, 60.0), size=kinds[0])

    def _by_kind(self, values: Floats) -> list[Floats]:
        return np.split(values, np.cumsum(self.kinds)[:-1])

    @cached_property
    def attributes(self) -> list[str]:
        return [name.split(":")[0] for name in self.names]

    @cached_property
    def _cells(self) -> tuple[Ints, Floats]:
        """Segments (cells, 3) of every kind of person, and the share of each kind among the people of each segment (segments, cells)."""
        shares = (
            np.asarray(self.design.countries, dtype=np.float64)[:, None, None]
            * self.ages[:, :, None]
            * self.genders[:, None, :]
        )
        places = np.indices(shares.shape).reshape(3, -1).T + np.cumsum((0, *self.kinds[:-1]))
        weights = np.zeros((len(self.names), len(places)))
        for kind in range(3):
            weights[places[:, kind], np.arange(len(places))] = shares.reshape(-1)
        return places, weights / weights.sum(axis=1, keepdims=True)

    def survey(self, rng: np.random.Generator) -> Survey:
        """New people, new questions, new errors of the models."""
        return self.rounds(rng, (slice(None),))[0]

    def rounds(self, rng: np.random.Generator, asked: Sequence[slice]) -> list[Survey]:
        """A survey of new people for each of `asked`, some of one set of questions. A question of several has one truth and one prediction."""
        questions = _Questions(self.design, len(self.names), rng)
        truth = self._truth(questions)
        people = [self._observed(questions, rng) for _ in asked]
        predicted, read, cells = {}, {}, {}
        for model, errors in self.design.models.items():
            predicted[model] = _predicted(self.design, questions, truth, errors, rng)
            read[model] = _read(self.design, model, predicted[model].shape[:3], rng)
            cells[model] = rng.random(truth.shape[:2]) < self.design.asked
        return [
            Survey(
                questions.k[some],
                questions.battery[some],
                n,
                answers[:, some],
                truth[some],
                observed[some],
                {model: values[:, some] for model, values in predicted.items()},
                {model: values[:, some] for model, values in read.items()},
                {model: values[some] for model, values in cells.items()},
                f"W{place}",
                np.arange(len(questions.k))[some],
            )
            for place, (some, (n, answers, observed)) in enumerate(zip(asked, people, strict=True), start=1)
        ]

    def _observed(self, asked: _Questions, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
        """New people: how many of each segment, what each answers, and the shares of the segments."""
        belongs = self._people(rng)
        answers = self._answers(asked, belongs, rng)
        n = np.bincount(belongs.ravel(), minlength=len(self.names))
        counts = _counts(answers, belongs, len(self.names), int(asked.k.max()))
        return n, answers, counts / np.maximum(n, 1)[None, :, None]

    def _people(self, rng: np.random.Generator) -> Ints:
        """Segments (people, 3): countries as designed, age and gender drawn."""
        country = np.repeat(np.arange(self.kinds[0]), self.design.countries)
        drawn = [
            (rng.random(len(country))[:, None] > np.cumsum(shares, axis=1)[country, :-1]).sum(axis=1)
            for shares in (self.ages, self.genders)
        ]
        return np.stack([country, *drawn], axis=1) + np.cumsum((0, *self.kinds[:-1]))

    def _truth(self, asked: _Questions) -> Floats:
        """(questions, segments, options): the share of each answer among all people of a segment."""
        places, weights = self._cells
        level = (self.means @ asked.loadings.T + asked.own)[places].sum(axis=1)  # (cells, questions)
        below = np.stack([weights @ ndtr(bound - level) for bound in asked.bounds.T], axis=-1)  # (segments, questions, k + 1)
        return asked.with_dont_know(np.diff(below, axis=-1).transpose(1, 0, 2))

    def _answers(self, asked: _Questions, belongs: Ints, rng: np.random.Generator) -> Ints:
        """(people, questions)."""
        people, questions = len(belongs), len(asked.k)
        unique = np.sqrt(1 - self.design.common)
        level = (self.means @ asked.loadings.T + asked.own)[belongs].sum(axis=1)
        if self.design.other_people:
            level += rng.normal(size=(people, questions))
        else:
            level += rng.normal(size=(people, _FACTORS)) @ asked.loadings.T
            # People answer the items of a battery alike, beyond what the factors make of them.
            level += unique * np.sqrt(_HABIT) * rng.normal(size=(people, asked.battery.max() + 1))[:, asked.battery]
            level += unique * np.sqrt(1 - _HABIT) * rng.normal(size=(people, questions))
        answers = np.zeros((people, questions), dtype=np.int64)
        for bound in asked.bounds.T[1:-1]:
            answers += level > bound
        if asked.dont_know.any():
            unsure = np.sqrt(0.5) * (rng.normal(size=(people, 1)) + rng.normal(size=(people, questions)))
            answers = np.where(unsure < ndtri(asked.dont_know), asked.k - 1, answers)
        return answers


_HABIT = 0.25
"""Share of what is a person's own on a question that is the same within a battery."""


class _Questions:
    """What a survey asks. Questions of a battery have `alike` of their variance in common in all that is drawn."""

    def __init__(self, design: Design, segments: int, rng: np.random.Generator) -> None:
        self.battery = np.repeat(np.arange(len(design.batteries)), design.batteries)
        self.design = design
        scale = rng.choice(design.options, size=len(design.batteries))
        off = (rng.random(len(design.batteries)) < 0.5) & (design.dont_know > 0)
        self.k = (scale + off)[self.battery]
        self.dont_know = (
            np.where(off[self.battery], rng.beta(2, 2 / design.dont_know - 2, len(self.k)), 0)
            if off.any()
            else np.zeros(len(self.k))
        )
        loadings = self.drawn(rng, _FACTORS)
        self.loadings = loadings / np.linalg.norm(loadings, axis=1, keepdims=True) * np.sqrt(design.common)
        self.own = (self.drawn(rng, segments) * design.own).T  # (segments, questions)
        self.bounds = self._bounds(self.drawn(rng, max(design.options)), scale[self.battery])
        # Some batteries are hard for every model.
        self.hard = np.exp(0.3 * self.drawn(rng, 1) - 0.045)

    def drawn(self, rng: np.random.Generator, many: int) -> Floats:
        """(questions, many) standard normal."""
        alike = self.design.alike
        of_battery = rng.normal(size=(len(self.design.batteries), many))[self.battery]
        return np.sqrt(alike) * of_battery + np.sqrt(1 - alike) * rng.normal(size=(len(self.battery), many))

    def _bounds(self, odds: Floats, scale: Ints) -> Floats:
        """(questions, options + 1): the standing from which on the next option is answered; infinite after the last option."""
        if self.design.rare:
            odds = np.stack([np.full(len(odds), 2.4), odds[:, 1]], axis=1)
            odds = odds * [1, 0.8]
        weights = np.where(np.arange(odds.shape[1]) < scale[:, None], np.exp(self.design.flat * odds), 0)
        reached = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        reached[np.arange(odds.shape[1]) >= scale[:, None] - 1] = 1
        inner = ndtri(np.minimum(reached, 1)) * np.sqrt(1 + self.design.country**2 * self.design.common)
        columns = int(self.k.max())
        bounds = np.full((len(odds), columns + 1), np.inf)
        bounds[:, 0] = -np.inf
        bounds[:, 1 : odds.shape[1] + 1] = inner[:, :columns]
        return bounds

    def with_dont_know(self, truth: Floats) -> Floats:
        truth = truth * (1 - self.dont_know)[:, None, None]
        truth[np.arange(len(self.k)), :, self.k - 1] += self.dont_know[:, None]
        return truth


def _counts(answers: Ints, belongs: Ints, segments: int, options: int) -> Floats:
    """How many of each segment gave each answer, (questions, segments, options)."""
    questions = answers.shape[1]
    flat = (np.arange(questions) * segments)[None, :, None] + belongs[:, None, :]
    counted = np.bincount((flat * options + answers[:, :, None]).ravel(), minlength=questions * segments * options)
    return counted.reshape(questions, segments, options).astype(np.float64)


def _predicted(design: Design, asked: _Questions, truth: Floats, errors: Errors, rng: np.random.Generator) -> Floats:
    """(draws, questions, segments, options). Draws differ a little."""
    options, hard = truth.shape[2], asked.hard
    if design.skewed:
        hard = (
            hard / np.sqrt(rng.chisquare(design.skewed, size=(len(design.batteries), 1)) / design.skewed)[asked.battery] * 0.7
        )
    off = (hard * asked.drawn(rng, options) * errors.shared)[:, None, :]
    off = off + hard[:, :, None] * rng.normal(0, errors.cell, truth.shape)
    off = off + rng.normal(0, 0.1 if design.draws > 1 else 0, (design.draws, *truth.shape))
    raised = np.where(truth > 0, (truth + 0.003) * np.exp(np.clip(off, -6, 6)), 0)
    return raised / raised.sum(axis=-1, keepdims=True)


def _read(design: Design, model: str, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Answers to some questions cannot be read more often than to others."""
    unread = design.unread[model] if isinstance(design.unread, Mapping) else design.unread
    if not unread:
        return np.ones(shape, dtype=bool)
    rate = rng.beta(2, 2 / unread - 2, size=(shape[1], 1))
    return rng.random(shape) >= rate * (1 + design.uneven * np.where(np.arange(shape[2]) % 2, 1, -1))


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
