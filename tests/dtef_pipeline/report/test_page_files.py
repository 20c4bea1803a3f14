from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.report.page_files import page_names


@given(st.sets(st.text(max_size=40), max_size=8))
def test_files_are_plain_and_no_two_ids_share_one(names: set[str]) -> None:
    pages = page_names(names)
    assert set(pages) == names
    assert len({page.lower() for page in pages.values()}) == len(names)
    assert all(
        re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,130}\.html", page) and page != "index.html" for page in pages.values()
    )
