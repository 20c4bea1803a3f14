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
_ARROWS = {"higher": " ↑", "lower": " ↓"}
_TINTS = 4


def metrics_by_family(found: ScenarioResults) -> str:
    """A table of each family of metrics: one row per player, a column per metric, with its interval."""
    overall = found.overall
    families = [name for name in FAMILY_ORDER if (overall["family"] == name).any()]
    return "".join(_family(found, overall[overall["family"] == name], name, at < 2) for at, name in enumerate(families))


def _family(found: ScenarioResults, rows: pd.DataFrame, family: str, is_open: bool) -> str:
    scored = [name for name in found.metrics if (rows["metric"] == name).any()]
    if not scored:
        return ""
    players = _main_order(found)
    keys = _keys_of(players)
    shown: dict[str, list[str | None]] = {"who": list(who(players))}
    columns = [Column("who", "Player", named)]
    for name in scored:
        own = rows[rows["metric"] == name]
        cells = dict(zip(_keys_of(own), with_interval(own, "mean", ("low", "high")), strict=True))
        shown[name] = [cells.get(key) for key in keys]
        unit, direction, told = own["unit"].iloc[0], str(own["direction"].iloc[0]), found.told_metrics.get(name)
        title = f"{metric_name(name)} ({unit}){_ARROWS.get(direction, '')}"
        columns.append(Column(name, title, as_is, told.description if told else ""))
    plain = rows[[*PLAYER_KEYS, "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters", "reason"]]
    caption = f"{found.name}: {family}; ↑ higher is better, ↓ lower is better"
    return fold(
        inline(family), table(pd.DataFrame(shown), columns, caption=caption, row_head="who", data=plain), is_open=is_open
    )


def _keys_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Who each row is about."""
    return list(zip(*(frame[name] for name in PLAYER_KEYS), strict=True))


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
    lines = met.drop_duplicates(PLAYER_KEYS).sort_values(["order", "model", "model_variant", "persona"], ignore_index=True)
    cells = {(key, against): cell for key, against, cell in zip(_keys_of(met), met["opponent"], met["cell"], strict=True)}
    keys = _keys_of(lines)
    shown = {f"against {at}": [cells.get((key, name)) for key in keys] for at, name in enumerate(opponents)}
    frame = pd.DataFrame({"who": who(lines), **shown})
    columns = [Column("who", "Player", named)]
    columns += [
        Column(f"against {at}", f"against {name.removeprefix('baseline/')}", as_is) for at, name in enumerate(opponents)
    ]
    met = met.sort_values(["order", "model", "model_variant", "persona", "opponent"], ignore_index=True)
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
    if set(personas) <= {NO_PERSONA}:
        return paragraph("No persona was played: `--persona ID` of `dtef games run` has every model play one.")
    held = dict(iter(models[models["mean"].notna()].groupby("metric", sort=False)))
    names = [name for name in found.metrics if name in held]
    grids = [_personas_of(held[name], personas, at == 0) for at, name in enumerate(names)]
    return f'<div class="metrics" data-of="{found.name}, personas">{"".join(grids)}</div>'


def _personas_of(rows: pd.DataFrame, personas: list[str], is_open: bool) -> str:
    metric, unit = str(rows["metric"].iloc[0]), str(rows["unit"].iloc[0])
    known = with_interval(rows, "mean", ("low", "high"))
    cells = {
        (variant, persona): cell for variant, persona, cell in zip(rows["model_variant"], rows["persona"], known, strict=True)
    }
    lines = sorted(set(zip(rows["model"], rows["model_variant"], strict=True)))
    names = [model for model, _ in lines]
    shown = {f"persona {at}": [cells.get((variant, persona)) for _, variant in lines] for at, persona in enumerate(personas)}
    told = [wrapping_name(variant if names.count(model) > 1 else model) for model, variant in lines]
    columns = [Column("who", "Model", named)]
    columns += [Column(f"persona {at}", persona or AS_ITSELF_TOLD, as_is) for at, persona in enumerate(personas)]
    caption = f"{metric_name(metric)} ({unit}): {counted(len(lines), 'model')} by {counted(len(personas), 'persona')}"
    plain = rows[
        ["model", "model_variant", "persona", "snapshot", "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters"]
    ]
    grid = table(pd.DataFrame({"who": told, **shown}), columns, caption=caption, row_head="who", data=plain)
    return fold(f'{inline(metric_name(metric))} <span class="count">· {inline(unit)}</span>', grid, is_open=is_open)


def joined(parts: Iterable[str], shown: Callable[[str], str] = inline) -> str:
    """Names as markup with commas between them."""
    return ", ".join(map(shown, parts))
