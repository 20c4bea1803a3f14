"""Responses as people label them: without the names of models, makers and providers that would say who wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pandas as pd

from dtef_pipeline.rubric.hidden_names import HiddenNames, names_of


def blinded(rows: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """The rows with [model], [company] or [provider] in place of each name in `text`; `hidden` says how many names that are.

    `rows`: blueprint, `shown` (the prompt), `text` and `criterion`, as of `label_sheet.with_texts`. `responses`: as rubric_responses; the names
    of a blueprint are those of the models that answered it, by `model`, `model_variant` and, if it is a column, `served_model`. A name that the
    prompt or the criterion of the row has stays: the row is about it.
    """
    names = {blueprint: _names(own) for blueprint, own in responses.groupby("blueprint", sort=False)}

    @cache
    def of_row(blueprint: str, shown: str, criterion: str) -> HiddenNames:
        return names[blueprint].without(f"{shown}\n{criterion}")

    columns = (rows[name].tolist() for name in ("blueprint", "shown", "criterion", "text"))
    told = [
        _hidden(of_row(blueprint, shown, criterion), text) for blueprint, shown, criterion, text in zip(*columns, strict=True)
    ]
    return rows.assign(text=[text for text, _ in told], hidden=[number for _, number in told])


def _hidden(names: HiddenNames, text: str) -> tuple[str, int]:
    number = len(names.found(text))
    return (names.hide(text), number) if number else (text, 0)


def _names(responses: pd.DataFrame) -> HiddenNames:
    called = {*_known(responses["model"]), *(_known(responses["served_model"]) if "served_model" in responses else ())}
    return names_of(sorted(_known(responses["model_variant"])), sorted(called))


def _known(values: Iterable[object]) -> set[str]:
    return {str(value) for value in values if isinstance(value, str) and value}
