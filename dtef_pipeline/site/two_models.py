"""Any two models side by side: the difference with its interval, and which is better item by item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import DataFile, Page, is_unknown
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.paths import COMPARE_PAGE, choose_file_names
from dtef_pipeline.text.number_words import format_count


def compare_pages(contents: SiteContents) -> Iterator[Page | DataFile]:
    """Yield the page with the choice of models, and for each family the data of each model."""
    names, files = list(contents.model_paths), choose_file_names(contents.model_paths)
    families = [_build_manifest(contents, entry, files) for entry in contents.families]
    answer = f"Choose two of {format_count(len(names), 'model')}: the difference, and where one beats the other."
    yield Page(
        COMPARE_PAGE,
        "Compare two models",
        answer,
        template="compare.html.j2",
        values={"models": names, "manifest": {"families": families}},
        scripts=("compare.js",),
    )
    for family in contents.families:
        yield from _build_data_files(family, files)


def _build_manifest(contents: SiteContents, family: FamilyEntry, files: dict[str, str]) -> dict[str, Any]:
    """Build the script's initial data: tested differences, and the files of each model's item scores."""
    content = family.content
    tests = [
        [
            content.name_of(row["model"], row["model_variant"]),
            content.name_of(row["other_model"], row["other_variant"]),
            None if is_unknown(row["difference"]) else [row["difference"], row["low"], row["high"]],
            row["verdict"],
            content.setting_text(row),
        ]
        for row in contents.comparisons[family.name]
    ]
    names = sorted(set(content.item_scores["model"]) & set(files))
    return {
        "name": family.name,
        "title": family.site.title,
        "tested": tests,
        "files": {name: f"compare/{family.name}/{files[name]}.js" for name in names},
        "items": f"compare/{family.name}.js",
        "note": content.item_note,
        "places": {name: [row.rank, list(row.score)] for name in files if (row := family.find_board_row(name))},
    }


def _build_data_files(family: FamilyEntry, files: dict[str, str]) -> Iterator[DataFile]:
    """Yield the items with labels and pages, once; then each model's scores by item position."""
    scores = family.content.item_scores
    items = scores.drop_duplicates("item")[["item", "label", "page"]]
    if not len(items):
        return
    yield DataFile(f"compare/{family.name}.js", items.to_dict("list"))
    for name, rows in scores.assign(at=pd.factorize(scores["item"])[0]).groupby("model", sort=True):
        if path := files.get(str(name)):
            known = rows[rows["score"].notna()]
            values = {"at": known["at"].tolist(), "score": known["score"].astype(float).round(4).tolist()}
            yield DataFile(f"compare/{family.name}/{path}.js", values)
