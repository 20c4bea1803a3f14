"""Writes the synthetic sample rounds `rounds/S1` and `rounds/S2` in the file layout of Global Dialogues.

Everything in them is invented: simulated people with a country, an age and so on answer questions written for this purpose. Groups
differ, and differ in much the same way in both rounds, so that the baseline predictors can be told apart.

    python data/make_sample.py [directory]
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

SEED = 20_250_301
RESPONDENTS = {"S1": 640, "S2": 700}
SMALLEST_SHOWN = 10  # cells of smaller segments are blank, as published

ATTRIBUTES: dict[str, dict[str, float]] = {  # value -> share of respondents
    "language": {"English": 0.7, "Portuguese (Brazil)": 0.15, "Hindi": 0.15},
    "age": {"&lt;18": 0, "18-25": 0.26, "26-35": 0.32, "36-45": 0.18, "46-55": 0.13, "56-65": 0.08, "65+": 0.03},
    "gender": {"Female": 0.49, "Male": 0.5, "Non-binary": 0.01, "Other / prefer not to say": 0},
    "environment": {"Rural": 0.18, "Suburban": 0.3, "Urban": 0.52},
    "concern": {"Equally concerned and excited": 0.5, "More concerned than excited": 0.2, "More excited than concerned": 0.3},
    "religion": {
        "Buddhism": 0.07,
        "Christianity": 0.34,
        "Hinduism": 0.14,
        "I do not identify with any religious group or faith": 0.27,
        "Islam": 0.18,
    },
    "country": {
        "Brazil": 0.16,
        "Germany": 0.12,
        "Iceland": 0.004,
        "India": 0.2,
        "Japan": 0.1,
        "Kenya": 0.15,
        "Turkey": 0.08,
        "United States": 0.186,
    },
}
NEARLY_EMPTY = ("gender", "Non-binary", 6)
O_NUMBERS = {
    "S1": {"language": 1, "age": 2, "gender": 3, "environment": 4, "concern": 5, "religion": 6, "country": 7},
    "S2": {"language": 1, "age": 2, "gender": 3, "environment": 4, "religion": 5, "country": 6, "concern": 7},
}
SPELLING = {"S2": {"Turkey": "Türkiye"}}
REGIONS = ("44+", "Africa", "Asia", "Europe")

DISTRUST = ("Strongly distrust", "Somewhat distrust", "Neither trust nor distrust", "Somewhat trust", "Strongly trust")
AGREE = ("Strongly disagree", "Somewhat disagree", "Neutral / No opinion", "Somewhat agree", "Strongly agree")
EFFECT = ("Very negative", "Somewhat negative", "Neutral", "Somewhat positive", "Very positive")


@dataclass(frozen=True)
class Question:
    """A question of the sample: ordinal ones follow a latent attitude, nominal ones choose among options freely."""

    text: str
    options: tuple[str, ...]
    ordinal: bool = True
    dont_know: float = 0.0  # share that takes the last option, off the scale
    asked: float = 1.0  # share of respondents who see the question
    rounds: tuple[str, ...] = ("S1", "S2")
    attribute: str = ""  # a profile question, or the one that defines a segment


QUESTIONS = (
    Question("Which language would you like to answer in?", tuple(ATTRIBUTES["language"]), attribute="language"),
    Question("What is your age?", ("Less than 18", *list(ATTRIBUTES["age"])[1:]), attribute="age"),
    Question("How would you describe your gender?", tuple(ATTRIBUTES["gender"]), attribute="gender"),
    Question("What kind of place is your home in?", tuple(ATTRIBUTES["environment"]), attribute="environment"),
    Question(
        "Taking everything together, how do you feel about artificial intelligence becoming part of everyday life?",
        ("More excited than concerned", "Equally concerned and excited", "More concerned than excited"),
        attribute="concern",
    ),
    Question("What has been the effect of AI on your town so far?", EFFECT),
    Question("How much do you trust your nearest hospital?", DISTRUST),
    Question("How much do you trust chatbots that answer health questions?", (*DISTRUST[:3], "Somewhat trust\t", DISTRUST[4])),
    Question("How much do you trust the newspapers of your country?", DISTRUST),
    Question(
        "How often did you use an AI tool for work or study last month?",
        ("Daily", "Weekly", "Monthly", "Less often", "Never"),
    ),
    Question("Companies should say so when a customer is talking to a machine.", AGREE),
    Question("A computer may never have the last word on who gets a loan.", AGREE, rounds=("S1",)),
    Question("Artists should be asked before a machine learns from their work.", AGREE, rounds=("S2",)),
    Question(
        "Will AI make it easier or harder for young people to find good work?",
        ("Much harder", "Somewhat harder", "About the same", "Somewhat easier", "Much easier"),
    ),
    Question(
        "How likely is it that an AI will teach a class at your nearest school within ten years?",
        ("Very unlikely", "Somewhat unlikely", "Somewhat likely", "Very likely", "Don't know"),
        dont_know=0.12,
    ),
    Question(
        "How important is it to you that an AI can explain what it decided?",
        ("Not at all important", "Slightly important", "Moderately important", "Very important", "Extremely important"),
    ),
    Question("Should pupils be allowed to use AI for homework?", ("Yes", "No", "It depends", "Not sure"), ordinal=False),
    Question(
        "Which of these would you hand over to an AI first?",
        ("Planning a journey", "Answering letters", "Keeping the household budget", "Questions about health", "None of these"),
        ordinal=False,
    ),
    Question(
        "Who should decide how AI is used in public offices?",
        ("Parliament", "The offices themselves", "Independent experts", "The people, by vote"),
        ordinal=False,
    ),
    Question(
        "How satisfied were you with the last answer an AI gave you?",
        ("Very dissatisfied", "Somewhat dissatisfied", "Neutral", "Somewhat satisfied", "Very satisfied", "Never used"),
        dont_know=0.08,
        asked=0.3,
    ),
    Question("What has been the effect of AI on your town so far?", EFFECT),
)
OPEN_ENDED = "Tell us about a moment when a machine surprised you."

Ints = npt.NDArray[np.int64]
People = dict[str, Ints]
"""Attribute -> for each respondent the number of the value."""


def people(count: int, rng: np.random.Generator) -> People:
    """Simulated respondents."""
    drawn = {}
    for name, values in ATTRIBUTES.items():
        shares = np.array(list(values.values()))
        drawn[name] = rng.choice(len(values), size=count, p=shares / shares.sum())
    attribute, value, size = NEARLY_EMPTY
    index = list(ATTRIBUTES[attribute]).index(value)
    drawn[attribute][drawn[attribute] == index] = 0
    drawn[attribute][:size] = index
    return drawn


def leanings(question: Question, rng: np.random.Generator) -> dict[str, npt.NDArray[np.float64]]:
    """How each value of each attribute leans: one number for an ordinal question, one per option for a nominal one."""
    width = 1 if question.ordinal else len(question.options)
    spread = {"country": 0.55, "age": 0.35, "concern": 0.6, "religion": 0.3, "environment": 0.2, "gender": 0.15, "language": 0}
    return {name: rng.normal(0, spread[name], size=(len(values), width)) for name, values in ATTRIBUTES.items()}


def answers(question: Question, who: People, drift: float, rng: np.random.Generator) -> Ints:
    """Each respondent's option; -1 where the question was not asked or not answered."""
    count = len(who["age"])
    if question.attribute:
        return own_value(question, who)
    fixed = np.random.default_rng([SEED, *question.text.encode()])  # the same leanings in both rounds
    lean, base = leanings(question, fixed), fixed.normal(0, 0.5, size=1 if question.ordinal else len(question.options))
    shifted = {name: effect + drift * rng.normal(0, 0.5, size=effect.shape) for name, effect in lean.items()}
    latent = base + sum(effect[who[name]] for name, effect in shifted.items())
    chosen = ordinal_choice(question, latent[:, 0], rng) if question.ordinal else nominal_choice(latent, rng)
    return np.where(rng.random(count) < question.asked * 0.98, chosen, -1)


def own_value(question: Question, who: People) -> Ints:
    """What a respondent says of himself."""
    values = [value.replace("&lt;18", "Less than 18") for value in ATTRIBUTES[question.attribute]]
    places: Ints = np.array([question.options.index(value) for value in values])
    own: Ints = places[who[question.attribute]]
    return own


def ordinal_choice(question: Question, latent: npt.NDArray[np.float64], rng: np.random.Generator) -> Ints:
    """The step of the scale that the attitude, with personal noise, reaches."""
    points = len(question.options) - (question.dont_know > 0)
    steps = np.linspace(-1.4, 1.4, points - 1)
    chosen = np.searchsorted(steps, latent + rng.normal(0, 0.9, size=len(latent)))
    return np.where(rng.random(len(latent)) < question.dont_know, points, chosen)


def nominal_choice(latent: npt.NDArray[np.float64], rng: np.random.Generator) -> Ints:
    """One option each, by random utility."""
    chosen: Ints = np.argmax(latent + rng.gumbel(size=latent.shape), axis=1)
    return chosen


def columns(round_id: str, who: People) -> Iterator[tuple[str, npt.NDArray[np.bool_], bool]]:
    """(name, members, cells shown) of All, the regions and the segments."""
    everyone = np.ones(len(who["age"]), dtype=bool)
    yield "All", everyone, True
    for region in REGIONS:
        yield region, np.zeros(len(everyone), dtype=bool), False
    for attribute, number in O_NUMBERS[round_id].items():
        for index, value in enumerate(ATTRIBUTES[attribute]):
            members = who[attribute] == index
            shown = attribute != "language" and int(members.sum()) >= SMALLEST_SHOWN
            yield f"O{number}: {SPELLING.get(round_id, {}).get(value, value)}", members, shown


def write_round(round_id: str, directory: Path) -> None:
    """The three files of one round."""
    rng = np.random.default_rng([SEED, int(round_id[1:])])
    who = people(RESPONDENTS[round_id], rng)
    segments = list(columns(round_id, who))
    questions = [q for q in QUESTIONS if round_id in q.rounds]
    chosen = [answers(q, who, 0.0 if round_id == "S1" else 0.5, rng) for q in questions]
    ids = [f"{round_id.lower()}-{number:02}" for number in range(1, len(questions) + 1)]
    directory.mkdir(parents=True, exist_ok=True)

    names = [name for name, _, _ in segments]
    write(directory / f"{round_id}_aggregate_standardized.csv", aggregate(ids, questions, chosen, segments, names))
    write(directory / f"{round_id}_segment_counts_by_question.csv", counts(ids, questions, chosen, segments, names))
    write(directory / f"{round_id}_discussion_guide.csv", guide(questions))


Segments = Sequence[tuple[str, npt.NDArray[np.bool_], bool]]


def aggregate(
    ids: Sequence[str], questions: Sequence[Question], chosen: Sequence[Ints], segments: Segments, names: Sequence[str]
) -> Iterator[list[str]]:
    """One row per answer option, with one percentage per segment."""
    middle = ["OriginalResponse", "Star", "Categories", "Sentiment", "Submitted By", "Language", "Sample ID", "Participant ID"]
    yield ["Question ID", "Question Type", "Question", "Response", *middle, *names]
    for question_id, question, options in zip(ids, questions, chosen, strict=True):
        for index, option in enumerate(question.options):
            cells = [percent(options[members], index) if shown else "" for _, members, shown in segments]
            yield [question_id, "Poll Single Select", question.text, option, *[""] * len(middle), *cells]
    for answer in ("A machine found my lost dog in a photograph.", "It apologised."):
        yield ["open-01", "Ask Opinion", OPEN_ENDED, answer, *[""] * len(middle), *["50.0%" for _ in segments]]


def percent(options: Ints, index: int) -> str:
    """`34.2%`; blank where nobody answered."""
    answered = options[options >= 0]
    return f"{100 * np.mean(answered == index):.1f}%" if len(answered) else ""


def counts(
    ids: Sequence[str], questions: Sequence[Question], chosen: Sequence[Ints], segments: Segments, names: Sequence[str]
) -> Iterator[list[str]]:
    """Respondents per question and segment."""
    yield ["Question ID", "Question Text", *names]
    for question_id, question, options in zip(ids, questions, chosen, strict=True):
        yield [question_id, question.text, *(str(int((options[members] >= 0).sum())) for _, members, _ in segments)]


def guide(questions: Sequence[Question]) -> Iterator[list[str]]:
    """The questionnaire, with the options in their order; its first line is blank, as in the published ones."""
    option_columns = [f"Poll or Category Option {n}" for n in range(1, 8)]
    yield []
    yield ["Notes", "Section", "Item type (dropdown)", "Content", "Duration in minutes (dropdown)", *option_columns]
    for question in questions:
        kind = "onboarding single select" if question.attribute else "poll single select"
        yield ["", "", kind, question.text, "00:30", *question.options]
    yield ["", "", "ask opinion", OPEN_ENDED, "02:00"]


def write(path: Path, rows: Iterator[list[str]]) -> None:
    """A CSV file in UTF-8."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main(directory: Path) -> None:
    """Write both rounds below the directory."""
    for round_id in RESPONDENTS:
        write_round(round_id, directory / round_id)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "rounds")
