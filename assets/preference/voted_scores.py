"""The roll-up over all votes: `preference_scores`, and its job."""

from typing import Any, Literal

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.preference.stored_votes import PREFERENCE_GROUP, every_vote
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from dtef_pipeline.preference.fitted import PreferenceOptions
from dtef_pipeline.preference.published_scores import preference_scores as scores_of_votes
from dtef_pipeline.preference.stored_votes import version_of_votes
from dtef_pipeline.preference.who_met import who_met
from resources.paired_players import pairs_and_votes
from resources.votes import VoteStore


class PreferenceConfig(dg.Config):
    """How votes become scores."""

    ties: Literal["half", "davidson", "drop"] = Field(
        default="half",
        description="Treatment of a tie: half a win of each, an outcome with a parameter of its own, or nothing.",
    )
    prior_l2: float = Field(default=0.0, ge=0, description="Penalty prior_l2 * sum(beta^2); 0: none.")
    by_confidence: bool = Field(default=False, description="Whether a vote of confidence c counts c / 5.")
    degrees: Literal["reviewers", "effective"] = Field(
        default="reviewers", description="What intervals count: reviewers, or how many equally busy ones they are worth."
    )
    leak_risk: bool = Field(default=True, description="Whether votes count on pairs in whose texts a name stood.")

    @property
    def options(self) -> PreferenceOptions:
        weight: Literal["confidence"] | None = "confidence" if self.by_confidence else None
        return PreferenceOptions(self.ties, self.prior_l2, weight, None, self.degrees)


@dg.asset(deps=[dg.AssetKey("preference_votes")], **{**roll_up("preference_scores", code_version="2"), **PREFERENCE_GROUP})
def preference_scores(context: dg.AssetExecutionContext, config: PreferenceConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whose responses reviewers prefer: one row per family, partition, kind of reviewers and player, with a 95 % interval by whole reviewers.

    Beside it `preference_met` says who was compared with whom: one row per family, partition, kind of reviewers and two players, with pairs,
    votes, leak risks and voided votes. Made of the votes in the response store that nobody voided. People's votes and those of models that judge are never mixed. A player without
    a finite score or without an interval has the reason. Beside a player's score stands `persona_results`, `qa_board` or another board of its
    family: `dtef preference compare` shows both.
    """
    votes = every_vote(store)
    with VoteStore(store.responses_url or store.settings.responses_url) as stored:
        met = who_met(*pairs_and_votes(stored))
    counted = [vote for vote in votes if config.leak_risk or not vote.leak_risk]
    rows = scores_of_votes(counted, config.options)
    version = pa.repeat(version_of_votes(votes), len(rows))
    rows = rows.set_column(rows.schema.get_field_index("votes_version"), rows.schema.field("votes_version"), version)
    shown = ["family", "partition", "reviewer_kind", "rank", "tier", "player", "beta", "low", "high", "n_votes", "n_reviewers"]
    told = {"votes": len(counted), "votes_version": version_of_votes(votes), "leaks_left_out": len(votes) - len(counted)}
    return published(
        context, store, {"preference_scores": rows, "preference_met": met}, **told, scores=markdown(rows, shown, most=30)
    )


PREFERENCE_ROLL_UPS = [preference_scores]
preference_roll_ups = dg.define_asset_job(
    "preference_roll_ups",
    selection=dg.AssetSelection.assets(*PREFERENCE_ROLL_UPS),
    description="Scores of players from all votes, of people and of models that judge.",
    run_tags={"dtef/roll_ups": "preference"},
)
PREFERENCE_JOBS = [preference_roll_ups]
