"""Players of one scenario side by side: all metrics in a table, each against each opponent, and personas by models."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.players import NO_PERSONA
from dtef_pipeline.games.report.league_rows import FAMILY_ORDER, PLAYER_KEYS, ScenarioResults
from dtef_pipeline.games.report.player_board import metric_name, who
from dtef_pipeline.report.isolated import inline, wrapping_name
from dtef_pipeline.report.markup import Column, as_is, fold, is_unknown, named, paragraph, table, with_interval
from dtef_pipeline.text.counted import counted

AS_ITSELF_TOLD = "as itself"
_TINTS = 4


def metrics_by_family(found: ScenarioResults) -> str:
    """A table of each family of metrics: one row per player, a column per metric, with its interval."""
    overall = found.overall
    families = [name for name in FAMILY_ORDER if (overall["family"] == name).any()]
    return "".join(_family(found, overall[overall["family"] == name], name, at < 2) for at, name in enumerate(families))


def _family(found: ScenarioResults, rows: pd.DataFrame, family: str, is_open: bool) -> str:
    scored = [name for name in found.metrics() if (rows["metric"] == name).any()]
    if not scored:
        return ""
    players = _main_order(found)
    cells = rows.assign(cell=with_interval(rows, "mean", ("low", "high")))
    frame = players.assign(who=who(players))
    columns = [Column("who", "Player", named)]
    for name in scored:
        own = cells[cells["metric"] == name]
        frame = frame.merge(own[[*PLAYER_KEYS, "cell"]].rename(columns={"cell": name}), on=PLAYER_KEYS, how="left")
        unit, direction, told = own["unit"].iloc[0], own["direction"].iloc[0], found.told_metrics.get(name)
        arrow = {"higher": " ↑", "lower": " ↓"}.get(str(direction), "")
        columns.append(Column(name, f"{metric_name(name)} ({unit}){arrow}", as_is, told.description if told else ""))
    plain = rows[[*PLAYER_KEYS, "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters", "reason"]]
    shown = table(frame, columns, caption=f"{found.name}: {family}; ↑ higher is better, ↓ lower is better", row_head="who", data=plain)
    return fold(inline(family), shown, is_open=is_open)


def _main_order(found: ScenarioResults) -> pd.DataFrame:
    """The players, one row each, best first by the mean reward."""
    overall = found.overall
    return overall[overall["metric"] == EXPECTED_RETURN]


def matchups_grid(found: ScenarioResults) -> str:
    """The mean reward of each player (rows) against each opponent (columns)."""
    met = found.matchups
    if not len(met):
        return paragraph("Nobody meets an opponent here: the scenario has one seat.")
    players = _main_order(found)
    order = {(row["persona"], row["model_variant"]): at for at, row in enumerate(players.to_dict("records"))}
    met = met.assign(order=[order.get(pair, len(order)) for pair in zip(met["persona"], met["model_variant"], strict=True)])
    opponents = sorted(met["opponent"].unique(), key=lambda name: (not name.startswith("baseline/"), name))
    met = met.assign(is_baseline=met["model"].str.startswith("baseline/"), cell=_tinted(met))
    lines = met.drop_duplicates(PLAYER_KEYS).sort_values("order", ignore_index=True)
    frame = lines.assign(who=who(lines))
    columns = [Column("who", "Player", named)]
    for at, opponent in enumerate(opponents):
        own = met[met["opponent"] == opponent][[*PLAYER_KEYS, "cell"]].rename(columns={"cell": f"against {at}"})
        frame = frame.merge(own, on=PLAYER_KEYS, how="left")
        columns.append(Column(f"against {at}", f"against {opponent.removeprefix('baseline/')}", as_is))
    caption = f"{found.name}: mean reward ({met['unit'].iloc[0]}) of the row's player against the column's, with 95 % intervals"
    plain = met[["player", *PLAYER_KEYS, "opponent", "unit", "mean", "low", "high", "n_episodes", "n_clusters", "reason"]]
    return f'<div class="tinted">{table(frame, columns, caption=caption, row_head="who", data=plain)}</div>'


def _tinted(met: pd.DataFrame) -> list[str]:
    """Means with intervals, on a ground that says how far above or below 0 they are."""
    most = float(met["mean"].abs().max()) or 1.0
    cells = with_interval(met, "mean", ("low", "high"))
    return [f'<div class="tint {_tint(mean, most)}">{cell}</div>' for cell, mean in zip(cells, met["mean"], strict=True)]


def _tint(mean: float, most: float) -> str:
    if is_unknown(mean):
        return ""
    step = min(_TINTS, round(abs(mean) / most * _TINTS))
    return f"{'up' if mean > 0 else 'down'}{step}" if step else ""


def personas_grids(found: ScenarioResults) -> str:
    """Of each metric a grid of models (rows) and personas (columns): a row is a model across personas, a column a persona across models."""
    models = found.overall[~found.overall["is_baseline"]] if len(found.overall) else found.overall
    personas = sorted(set(models["persona"])) if len(models) else []
    if len(personas) < 2 and NO_PERSONA in personas or not personas:
        return paragraph("No persona was played: `--persona ID` of `dtef games run` has every model play one.")
    names = [name for name in found.metrics() if (models["metric"] == name).any()]
    grids = [_personas_of(models[models["metric"] == name], personas, at == 0) for at, name in enumerate(names)]
    return f'<div class="metrics" data-of="{found.name}, personas">{"".join(grids)}</div>'


def _personas_of(rows: pd.DataFrame, personas: list[str], is_open: bool) -> str:
    metric, unit = str(rows["metric"].iloc[0]), str(rows["unit"].iloc[0])
    cells = rows.assign(cell=with_interval(rows, "mean", ("low", "high")))
    lines = rows.drop_duplicates("model_variant").sort_values(["model", "model_variant"], ignore_index=True)
    several = set(lines["model"][lines["model"].duplicated(keep=False)])
    frame = lines[["model", "model_variant"]].assign(
        who=[wrapping_name(one.model_variant if one.model in several else one.model) for one in lines.itertuples()]
    )
    columns = [Column("who", "Model", named)]
    for at, persona in enumerate(personas):
        own = cells[cells["persona"] == persona][["model_variant", "cell"]].rename(columns={"cell": f"persona {at}"})
        frame = frame.merge(own.drop_duplicates("model_variant"), on="model_variant", how="left")
        columns.append(Column(f"persona {at}", persona or AS_ITSELF_TOLD, as_is))
    caption = f"{metric_name(metric)} ({unit}): {counted(len(lines), 'model')} by {counted(len(personas), 'persona')}"
    plain = rows[["model", "model_variant", "persona", "snapshot", "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters"]]
    shown = table(frame, columns, caption=caption, row_head="who", data=plain)
    return fold(f'{inline(metric_name(metric))} <span class="count">{inline(unit)}</span>', shown, is_open=is_open)


def joined(parts: Iterable[str], shown: Callable[[str], str] = inline) -> str:
    """Names as markup with commas between them."""
    return ", ".join(map(shown, parts))
