"""What is checked of the scores from votes."""

import dagster as dg

from assets.preference.voted_scores import preference_scores
from assets.stage.checks import asset_check, verdict
from assets.stage.resources import Store
from resources.votes import VoteStore, votes_on_equal_texts

_SHARES_APART = 1e-9


@asset_check(asset=preference_scores)
def preference_shares_are_whole(store: Store) -> dg.AssetCheckResult:
    """Within a fit and component the shares sum to 1, and each score lies in its interval."""
    keys = ["family", "partition", "reviewer_kind", "judge", "component"]
    frame = store.warehouse.rows("preference_scores", columns=[*keys, "player", "beta", "low", "high", "share"]).to_pandas()
    known = frame[frame["beta"].notna()]
    sums = known.groupby(keys, dropna=False)["share"].sum()
    offenders = [f"{key}: shares sum to {total}" for key, total in sums.items() if abs(total - 1) > _SHARES_APART]
    outside = known[(known["low"] > known["beta"]) | (known["high"] < known["beta"])]
    offenders += [f"{row.family} {row.partition} {row.player}: outside its interval" for row in outside.itertuples()]
    return verdict(offenders, checked=len(frame))


@asset_check(asset=preference_scores)
def votes_are_on_different_texts(store: Store) -> dg.AssetCheckResult:
    """Surprising votes: on two texts that differ, as reviewers read them, in nothing but case and white space. Such pairs are neither made nor
    served; they were imported, or voted on before a name was known that alone told the texts apart."""
    with VoteStore(store.responses_url or store.settings.responses_url) as votes:
        checked, offenders = votes_on_equal_texts(votes)
    return verdict(offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)


@asset_check(asset=preference_scores)
def votes_are_free_of_leaks(store: Store) -> dg.AssetCheckResult:
    """Votes on pairs in whose texts a name stood, which may still tell who wrote them: by two players, where scores count such votes."""
    rows = store.warehouse.rows("preference_met").to_pylist()
    whole = [row for row in rows if row["partition"] == "all"]
    offenders = [
        f"{row['family']} {row['player']} {row['other']}: {row['n_votes_leak_risk']} of {row['n_votes']} votes"
        for row in whole
        if row["n_votes_leak_risk"]
    ]
    return verdict(offenders, checked=sum(row["n_votes"] for row in whole), severity=dg.AssetCheckSeverity.WARN)
