"""The table of scores from stored votes: names, types and descriptions of its columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.tables import TableSpec, field

EVERY_PARTITION = "all"
_BY_ROLL_UP_OF_VOTES = "dtef preference board --refresh"
_OF_FIT = (
    field("separable", pa.bool_(), "Flag: true where some players of the fit have no finite score"),
    field("ties", pa.string(), "Treatment of ties: half (half a win of each), davidson, or drop"),
    field("prior_l2", pa.float64(), "Penalty prior_l2 * sum(beta^2) on the betas; null: none"),
    field("weight", pa.string(), "Weight of a vote: confidence (c counts c / 5); null: every vote counts 1"),
    field("unweighted_reason", pa.string(), "Reason why every vote counts 1 although weights were asked for; null: as asked"),
    field("control", pa.string(), "Control: length, betas are those of texts of equal length; null: none"),
    field("items", pa.string(), "Patterns of the items whose votes count, with commas between them; null: all items"),
    field("votes", pa.int64(), "Votes that the fit is made of"),
    field("reviewers", pa.int64(), "Reviewers who gave them"),
    field("leaks_left_out", pa.int64(), "Votes left out because a text of the pair contains a name"),
    field("self_judged", pa.int64(), "Votes among them of a judge on a response of its own maker; null: people voted"),
    field("self_judged_left_out", pa.int64(), "Votes of a judge left out: a response is of its own maker; null: people voted"),
    field("note", pa.string(), "Limit of the intervals: they hold for the prompts of these votes only; null: none"),
    field(
        "longer_share",
        pa.float64(),
        "Share of votes for the longer text, 0-1, ties left out; .5: length has no effect; null: none",
    ),
    field("longer_low", pa.float64(), "Lower end of the 95 % interval of longer_share; null: too few reviewers"),
    field("longer_high", pa.float64(), "Upper end of the 95 % interval of longer_share; null: too few reviewers"),
    field(
        "length_effect", pa.float64(), "Logits of a text twice as long as the other; null: no control by length, or no answer"
    ),
    field("flip_rate", pa.float64(), "Share of judges' verdicts that changed in the swapped order, 0-1; null: people voted"),
    field("first_share", pa.float64(), "Share of judges' decisions for the first text, 0-1; .5: no bias; null: people voted"),
    field("votes_version", pa.string(), "Version of all stored votes behind the table: their number and a hash"),
)
PREFERENCE_SCORES = pa.schema(
    [
        field("family", pa.string(), "Family of evaluations whose responses were voted on; elsewhere: votes of other tools"),
        field("partition", pa.string(), "First level of the items' partitions, such as a suite or league; all: the whole family"),
        field("reviewer_kind", pa.string(), "Kind of reviewers: person or judge; their votes are never mixed"),
        field("judge", pa.string(), "Judge who cast all of these votes: model variant and hash of its prompt; null: people voted"),
        field("player", pa.string(), "Player who wrote the responses: a model variant, or persona@variant"),
        field("component", pa.int32(), "Number of the group of players that were compared with each other, from 0; two cannot be compared"),
        field("rank", pa.int32(), "Place by beta within the component, 1 is best; null: there is no beta"),
        field("tier", pa.int32(), "Number of the group of players that cannot be distinguished from its first, from 1; null: there is no beta"),
        field("beta", pa.float64(), "Strength in logits, 0 on average over the component: higher is preferred; null: see the reason"),
        field("share", pa.float64(), "Share of exp(beta) in the sum of the component, 0-1: higher is preferred; null: see the reason"),
        field("se", pa.float64(), "Standard error of beta by whole reviewers and prompts; null: see the reason"),
        field("low", pa.float64(), "Lower end of the 95 % interval of beta; null: see the reason"),
        field("high", pa.float64(), "Upper end of the 95 % interval of beta; null: see the reason"),
        field("n_votes", pa.int64(), "Votes that count, on pairs with the player"),
        field("n_reviewers", pa.int64(), "Reviewers who voted on pairs with the player"),
        field("reason", pa.string(), "Reason why there is no beta or no interval; null: there are both"),
        *_OF_FIT,
    ]
)  # fmt: skip
"""One row per family, partition, kind of reviewers, judge and player; the columns from `separable` on describe the fit."""
PREFERENCE_TABLES: Mapping[str, TableSpec] = {"preference_scores": TableSpec(PREFERENCE_SCORES, remake=_BY_ROLL_UP_OF_VOTES)}
"""Votes belong to no family: they cover responses of all."""
