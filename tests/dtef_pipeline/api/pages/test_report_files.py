"""The report as the API serves it: the files of its list alone, for operators, under a policy of its own."""

from __future__ import annotations

import json
from pathlib import Path

from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.browsed import browsing, text_of, tree_of
from tests.dtef_pipeline.api.made import settings_in

FILES = {
    "index.html": "<p>front</p>",
    "static/site.js": "let a = 1;",
    "models/gpt-4.1.html": "<p>model</p>",
    "data/x.bin": "bits",
    "../secret.txt": "secret",
}


def with_report(folder: Path) -> None:
    """Write a report, a file beside it and one that is not in its list."""
    warehouse = Warehouse(settings_in(folder).warehouse)
    place = f"{warehouse.root}/report"
    for name, text in {**FILES, "stray.html": "stray"}.items():
        warehouse.put(f"{place}/{name}", text.encode())
    listed = {name: f"{at:064x}" for at, name in enumerate(FILES)}
    warehouse.put(f"{place}/.pages.json", json.dumps({**listed, "/etc/passwd": "0", "static\\..": "0"}).encode())


def test_files_of_the_report_are_served_with_their_types_and_kept_by_their_tag(tmp_path: Path) -> None:
    with_report(tmp_path)
    with browsing(tmp_path) as client:
        assert client.get("/report").headers["location"] == "/report/"
        front = client.get("/report/")
        assert (front.status_code, front.text) == (200, "<p>front</p>")
        assert client.get("/report/models/gpt-4.1.html").text == "<p>model</p>"
        script = client.get("/report/static/site.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        assert client.get("/report/data/x.bin").headers["content-type"] == "application/octet-stream"
        again = client.get("/report/", headers={"If-None-Match": front.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        policy = front.headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self' 'unsafe-eval'", "form-action 'none'"} <= set(policy.split("; "))
    assert "connect-src" not in policy
    assert front.headers["x-content-type-options"] == "nosniff"


UNLISTED = (
    *("stray.html", ".pages.json", "../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "static/..%2f..%2fsecret.txt"),
    *("..%5csecret.txt", "/etc/passwd", "%2fetc%2fpasswd", "static/", "static", "%00", "<script>", "x" * 3000),
)


def test_nothing_but_files_of_the_list_is_served(tmp_path: Path) -> None:
    with_report(tmp_path)
    with browsing(tmp_path) as client:
        for path in UNLISTED:
            answer = client.get(f"/report/{path}")
            assert answer.status_code in (303, 404), path
            assert "secret" not in answer.text.replace("secret.txt", ""), path
            assert "root:" not in answer.text, path
            assert "<script>" not in answer.text, path


def test_without_a_report_the_page_says_what_makes_it(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        answer = client.get("/report/")
        assert answer.status_code == 404
        assert "`dtef report`" in text_of(tree_of(answer.text))
        assert 'href="/report/"' in client.get("/queue").text


def test_a_list_that_is_none_of_ours_is_no_report(tmp_path: Path) -> None:
    warehouse = Warehouse(settings_in(tmp_path).warehouse)
    with browsing(tmp_path) as client:
        for text in ("[", "[1]", '"x"'):
            warehouse.put(f"{warehouse.root}/report/.pages.json", text.encode())
            assert client.get("/report/").status_code == 404


def test_the_report_is_not_for_reviewers_nor_for_nobody(tmp_path: Path) -> None:
    with_report(tmp_path)
    with browsing(tmp_path, "reviewer") as client:
        assert client.get("/report/").status_code == 403
    with browsing(tmp_path, None) as client:
        assert client.get("/report/models/gpt-4.1.html").headers["location"] == "/login?next=/report/models/gpt-4.1.html"
