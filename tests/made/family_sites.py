"""A small site of each family, with hostile texts where models and files write."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb

from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.survey.site.family_site import SURVEY_SITE
from tests.dtef_pipeline.survey.site.test_pages import HOSTILE, everywhere, with_texts
from tests.made.made_games import games_files, played_league
from tests.made.qa_suites import made_qa, qa_site_files
from tests.made.qa_tables import HOSTILE_WORDS
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import rolled_up, site_of
from tests.made.scores import scores_table
from tests.made.survey_boards import store_boards


def survey_files() -> dict[str, str]:
    rows = [*everywhere("ada", 0.8), *everywhere("bob", 0.5), *everywhere("baseline/leave-one-out-marginal", 0.7)]
    connection = duckdb.connect(config={"threads": 1})
    for name, table in {"scores": scores_table(rows), **with_texts(rows, HOSTILE)}.items():
        connection.register(f"_{name}", table)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
    store_boards(connection)
    return dict(build_site_files(connection, [SURVEY_SITE], {}, "Made today."))


FAMILY_FILES: Mapping[str, Callable[[], dict[str, str]]] = {
    "survey": survey_files,
    "rubric": lambda: site_of(rolled_up(made_tables())),
    "qa": lambda: qa_site_files(made_qa(words=HOSTILE_WORDS)),
    "games": lambda: games_files(played_league(["poker/kuhn", "negotiation/allocation"])),
}
"""By family, the files of its site; those that all sites share may be missing."""
