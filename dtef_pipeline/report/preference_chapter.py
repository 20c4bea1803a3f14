"""The chapter on what reviewers prefer, on the pages of each family whose responses were voted on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.preference.beside_metrics import BESIDE_METRIC, beside_metrics, of_judge, of_judges
from dtef_pipeline.preference.own_judges import short_judges
from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.report.charts import forest
from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    figure,
    fold,
    is_unknown,
    named,
    note,
    paragraph,
    section,
    table,
    three,
    whole,
    with_interval,
)
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.text.counted import counted

PREFERENCE_READ = ("preference_scores", "preference_met")
"""The tables that the chapter is made of, beside those of the metrics that preference is compared with."""
MOST_IN_GRID = 20
"""Players whose grid of who met whom is shown; one of more is only for download."""
_PREFERENCE_HOW = (
    "Reviewers saw two responses to the same item without names, and said which is better. Beta: strength in logits, 0 on average; a "
    "difference of 0 is an even chance, 0.69 is 2 to 1, 1.1 is 3 to 1. Intervals (95 %) say how far scores might move if other reviewers had "
    "voted. A tier holds players that "
    "the votes do not tell apart from its first. People's votes and those of models that judge are never mixed."
)
_NO_VOTES_YET = (
    "`dtef preference pairs` makes pairs, `dtef preference vote --out FOLDER` writes them for reviewers, `dtef import votes` takes "
    "their votes, and "
    "`dtef preference board --refresh` counts them"
)
_SCORE_TABLE = (
    Column("component", "Group", whole, "Players of two groups were never compared, directly or through others"),
    Column("rank", "Place", whole),
    Column("tier", "Tier", whole, "Players of one tier are not told apart from its first"),
    Column("who", "Player", named),
    Column(
        "strength",
        "Beta",
        as_is,
        "Strength in logits, higher is preferred; beneath it the 95 % interval: how far it might move with other reviewers",
    ),
    Column("share", "Share", three, "Share of exp(beta) in the sum of its group, 0-1"),
    Column("n_votes", "Votes", whole, "Votes that count, on pairs with the player"),
    Column("n_reviewers", "Reviewers", whole, "Reviewers who gave them"),
    Column("reason", "Remark", note),
)
_AGREEMENT_TABLE = (
    Column("metric", "Metric", as_is),
    Column("n_players", "Players", whole, "Players that have both"),
    Column("agreement", "Kendall's tau", as_is, "1: the same order, 0: nothing to do with each other, -1: reversed; 95 % interval over players"),
    Column("first", "First by votes", named),
    Column("first_by_metric", "First by the metric", named),
    Column("reason", "Remark", note),
)  # fmt: skip
_FIT_KEYS = ["partition", "reviewer_kind", "judge"]
_SCORE_DATA = ("component", "rank", "tier", "player", "beta", "se", "low", "high", "share", "n_votes", "n_reviewers", "reason")


def preference_chapters(
    connection: duckdb.DuckDBPyConnection, family: str, metrics: Sequence[MetricSource], *, always: bool = False
) -> list[Chapter]:
    """The chapter of a family; none where nobody voted on its responses, unless it is `always` there and says how to begin.

    `metrics`: what the family's preference is compared with; those whose tables the connection lacks are passed over.
    """
    rows = StoredRows(connection)
    scores = rows.frame("preference_scores", {"family": family}) if rows.has("preference_scores") else pd.DataFrame()
    title = "Human preference"
    if not len(scores):
        nothing = section("preference", title, _PREFERENCE_HOW, missing("No votes yet", _NO_VOTES_YET))
        return [Chapter("preference", title, nothing)] if always else []
    met = rows.frame("preference_met", {"family": family})
    found = _metrics_there(rows, connection, metrics)
    body = "".join(_fits(scores, met, found))
    return [Chapter("preference", title, section("preference", title, _PREFERENCE_HOW, body))]


def _fits(scores: pd.DataFrame, met: pd.DataFrame, metrics: pd.DataFrame) -> Iterator[str]:
    """Each fit: the whole family first, people before judges; partitions folded beneath."""
    scores = scores.assign(_whole=scores["partition"] != EVERY_PARTITION, _judge=scores["reviewer_kind"] == "judge")
    several = len(set(scores["partition"])) > 2
    short = short_judges(str(one) for one in scores["judge"] if not is_unknown(one))
    for _, own in scores.groupby(["_whole", "_judge", *_FIT_KEYS], sort=True, dropna=False):
        fit = own.sort_values(["component", "rank", "player"], ignore_index=True)
        first = fit.iloc[0]
        partition, kind = str(first["partition"]), str(first["reviewer_kind"])
        if partition != EVERY_PARTITION and not several:  # the one partition is the whole family
            continue
        judge = "" if is_unknown(first["judge"]) else str(first["judge"])
        here = met[(met["partition"] == partition) & (met["judge"].fillna("") == judge)] if len(met) else met
        by = _titled(short[judge], judge) if judge else "people"
        beside = _beside(fit, scores[scores["partition"] == partition], metrics)
        heading = f"{'All together' if partition == EVERY_PARTITION else inline(partition)}, {by}"
        named_fit = f"{partition}, {short[judge] if judge else kind}"
        agreement = _agreement(beside, named_fit, {of_judge(one): of_judge(name) for one, name in short.items()})
        yield fold(heading, _fit(fit, here, agreement, named_fit), is_open=partition == EVERY_PARTITION and not judge)


def _titled(short: str, full: str) -> str:
    """A name, with the string that it stands for where the mouse rests on it."""
    return wrapping_name(full) if short == full else f'<span title="{escape(full)}">{wrapping_name(short)}</span>'


def _fit(fit: pd.DataFrame, met: pd.DataFrame, agreement: str, named_fit: str) -> str:
    told = "".join(map(paragraph, fit_in_words(fit, met)))
    return told + "".join(_charts(fit)) + _board_of(fit, named_fit) + agreement + _grid(met, fit, named_fit)


def _charts(fit: pd.DataFrame) -> Iterator[str]:
    for _, own in fit[fit["beta"].notna()].groupby("component", sort=True):
        if len(own) < 2:
            continue
        drawn = own.assign(model=own["player"], model_variant=own["player"], score=own["beta"])
        drawn = drawn.assign(score_low=own["low"], score_high=own["high"])
        of = f" of group {own['component'].iloc[0] + 1}" if len(set(fit["component"])) > 1 else ""
        yield figure(forest(drawn, standalone=False), f"Strength{of} in logits (dots) with 95 % intervals, where there is one")


def _board_of(fit: pd.DataFrame, named_fit: str) -> str:
    shown = fit.assign(
        who=[f'<span class="name">{wrapping_name(name)}</span>' for name in fit["player"]],
        strength=with_interval(fit, "beta", ("low", "high")),
        component=fit["component"] + 1,
    )
    if len(set(fit["component"])) == 1:
        shown = shown.drop(columns="component")
    data = fit[[name for name in _SCORE_DATA if name in fit]]
    return table(shown, _SCORE_TABLE, caption=f"Preference: {named_fit}", row_head="who", data=data)


def _metrics_there(rows: StoredRows, connection: duckdb.DuckDBPyConnection, sources: Sequence[MetricSource]) -> pd.DataFrame:
    """BESIDE_METRIC of all metrics whose tables are there."""
    columns = ", ".join(BESIDE_METRIC)
    tables = [
        connection.sql(f"SELECT {columns} FROM ({one.query}) ORDER BY ALL").df()
        for one in sources
        if all(map(rows.has, one.tables))
    ]
    filled = [one for one in tables if len(one)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(BESIDE_METRIC))


def _beside(fit: pd.DataFrame, scores: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows of `beside_metrics` of one fit; the scores of judges are one more metric beside people's."""
    partition, kind = str(fit["partition"].iloc[0]), str(fit["reviewer_kind"].iloc[0])
    own = metrics if partition == EVERY_PARTITION else metrics[metrics["partition"] == partition]
    judged = of_judges(scores) if kind == "person" else own.iloc[:0]
    filled = [one for one in (own, judged) if len(one)]
    return beside_metrics(fit, pd.concat(filled, ignore_index=True) if filled else own)


def _agreement(beside: pd.DataFrame, named_fit: str, short: Mapping[str, str]) -> str:
    """`short`: what metrics with long names are called."""
    title = "<h4>Beside automated metrics</h4>"
    if not len(beside):
        return title + paragraph("No player has both votes and a metric.")
    lines = pd.DataFrame([_agreeing(rows) for _, rows in beside.groupby("metric", sort=True)])
    names = [_titled(short.get(str(one), str(one)), str(one)) for one in lines["metric"]]
    shown = lines.assign(agreement=with_interval(lines, "tau", ("tau_low", "tau_high")), metric=names)
    return title + table(shown, _AGREEMENT_TABLE, caption=f"Beside metrics: {named_fit}", row_head="metric", data=beside)


def _agreeing(rows: pd.DataFrame) -> dict[str, Any]:
    """What is shown of one metric."""
    one = rows.iloc[0]
    names = {
        by: rows.loc[rows[place] == 1, "player"]
        for by, place in (("first", "preferred_place"), ("first_by_metric", "metric_place"))
    }
    told = {by: ", ".join(map(wrapping_name, own)) for by, own in names.items()}
    return {**{name: one[name] for name in ("metric", "n_players", "tau", "tau_low", "tau_high", "reason")}, **told}


def _grid(met: pd.DataFrame, fit: pd.DataFrame, named_fit: str) -> str:
    """Votes for the player of each row against the player of each column."""
    if not len(met):
        return ""
    heading = f'Who met whom <span class="count">· {counted(int(met["n_pairs"].sum()), "pair")}</span>'
    ranked = list(fit["player"])
    players = [*ranked, *sorted({*met["player"], *met["other"]} - set(ranked))]
    cells = {}
    for row in met.to_dict("records"):
        halves = row["n_ties"] / 2
        cells[row["player"], row["other"]] = _met_cell(row, row["for_player"] + halves)
        cells[row["other"], row["player"]] = _met_cell(row, row["for_other"] + halves)
    listed = players[:MOST_IN_GRID]
    numbers = {one: at for at, one in enumerate(players, 1)}
    who = [f'<span class="name">{numbers[one]}. {wrapping_name(one)}</span>' for one in listed]
    shown = {f"against {numbers[other]}": [cells.get((one, other)) for one in listed] for other in listed}
    columns = [Column("who", "Player", named), *(Column(name, name, as_is, players[at]) for at, name in enumerate(shown))]
    caption = f"Votes for the row's player of those against the column's, a tie half for each; beneath, pairs: {named_fit}"
    grid = table(pd.DataFrame({"who": who, **shown}), columns, caption=caption, row_head="who", data=met)
    rest = (
        paragraph(f"The first {MOST_IN_GRID} of {len(players)} players; the download has all.")
        if len(players) > MOST_IN_GRID
        else ""
    )
    return fold(heading, rest + grid)


def _met_cell(row: dict[Any, Any], votes_for: float) -> str:
    return f'{votes_for:g} of {row["n_votes"]:,}<span class="ci">{row["n_voted"]:,} of {counted(row["n_pairs"], "pair")}</span>'


_TIES_IN_WORDS = {
    "half": "a tie is half a win of each player",
    "davidson": "a tie is an outcome of its own, by the model of Davidson",
    "drop": "ties do not count",
}


def fit_in_words(fit: pd.DataFrame, met: pd.DataFrame) -> Iterator[str]:
    """Sentences of one fit. `fit`: its rows of `preference_scores`, at least one; `met`: its rows of `preference_met`."""
    one: dict[Any, Any] = fit.iloc[0].to_dict()
    yield _votes_in_words(one) + _options(one)
    if not is_unknown(one["note"]):
        yield f"{one['note'][0].upper()}{one['note'][1:]}."
    if one["separable"]:
        yield (
            "Some players have no finite score: a player that won or lost all its votes can be as strong or as weak as one likes, so that no "
            "number is right. `prior_l2: 0.01` in the section `preference` of the panel file gives every player one."
        )
    if (groups := len(set(fit["component"]))) > 1:
        yield f"The players fall into {counted(groups, 'group')} that no vote compares with each other. Places and betas hold within a group."
    if not is_unknown(one["longer_share"]):
        ends = "" if is_unknown(one["longer_low"]) else f" (95 % interval {one['longer_low']:.3f} to {one['longer_high']:.3f})"
        yield (
            f"The longer text was preferred in {one['longer_share']:.3f}{ends} of the votes that are no ties; "
            "0.5 would mean that length plays no part."
        )
    yield from _of_votes_left_out(one)
    if not is_unknown(one["length_effect"]):
        yield f"Betas are those of texts of equal length; a text twice as long gains {one['length_effect']:.3f}{_ends_of_length(one)} logits."
    if not is_unknown(one["flip_rate"]):
        yield _of_places(one)
    if len(met):
        yield _pairs_in_words(met)


def _votes_in_words(one: Mapping[Any, Any]) -> str:
    words = f"{counted(int(one['votes']), 'vote')} of {counted(int(one['reviewers']), 'reviewer')}"
    worth = one["effective_reviewers"]
    if is_unknown(worth):
        return words
    return f"{words}, worth {worth:.1f} equally busy ones"


def _options(one: Mapping[Any, Any]) -> str:
    prior = (
        "no prior" if is_unknown(one["prior_l2"]) else f"a prior of {one['prior_l2']:g} * sum(beta^2) pulls scores towards 0"
    )
    weight = "every vote counts 1" if is_unknown(one["weight"]) else "a vote of confidence c counts c / 5"
    ties = _TIES_IN_WORDS.get(one["ties"], one["ties"])
    together = "intervals take all votes of one reviewer together, since they share a taste, and all votes on one prompt"
    if not is_unknown(one["unweighted"]):
        weight = f"{weight}, although weights were asked for: {one['unweighted']}"
    items = "" if is_unknown(one["items"]) else f" Only votes on items that fit {one['items']}."
    return f". How they count: {ties}; {weight}; {prior}; {together}.{items}"


def _of_votes_left_out(one: Mapping[Any, Any]) -> Iterator[str]:
    if one["leaks_left_out"]:
        yield f"Left out: {counted(int(one['leaks_left_out']), 'vote')} on pairs in whose texts a name stood."
    if is_unknown(one["self_judged"]):
        return
    left = f", and {int(one['self_judged_left_out']):,} such are left out" if one["self_judged_left_out"] else ""
    yield f"Of the judge's votes that count, {int(one['self_judged']):,} are on a response of its own maker{left}."


def _ends_of_length(one: Mapping[Any, Any]) -> str:
    return "" if is_unknown(one["length_low"]) else f" ({one['length_low']:.3f} to {one['length_high']:.3f})"


def _of_places(one: Mapping[Any, Any]) -> str:
    words = f"{one['flip_rate']:.1%} of the verdicts did not survive the swap of the texts, and are ties"
    if not is_unknown(one["first_share"]):
        words += f"; {one['first_share']:.3f} of the decisions are for the text that stood first; 0.5: the place plays no part"
    return f"{words}."


def _pairs_in_words(met: pd.DataFrame) -> str:
    """How many pairs there are and were voted on, with leak risks and voided votes."""
    sums = {name: int(met[name].sum()) for name in ("n_pairs", "n_voted", "n_leak_risk", "n_votes_leak_risk", "n_void")}
    words = f"{counted(sums['n_pairs'], 'pair')} of responses, {sums['n_voted']:,} with a vote that counts"
    words += f"; a name stood in the texts of {sums['n_leak_risk']:,}, with {counted(sums['n_votes_leak_risk'], 'vote')}"
    return f"{words}; {counted(sums['n_void'], 'voided vote')}."
