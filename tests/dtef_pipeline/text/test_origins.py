"""Hosts and origins as browsers write them."""

from __future__ import annotations

import pytest

from dtef_pipeline.text.origins import Origin, list_served_hosts, parse_hosts, parse_origin, read_origin


@pytest.mark.parametrize(
    ("scheme", "authority", "read"),
    [
        ("http", "127.0.0.1:3000", Origin("http", "127.0.0.1", "3000")),
        ("http", "LocalHost", Origin("http", "localhost", "80")),
        ("https", "dtef.example.org.", Origin("https", "dtef.example.org", "443")),
        ("https", "dtef.example.org:443", Origin("https", "dtef.example.org", "443")),
        ("http", "[::1]:3000", Origin("http", "[::1]", "3000")),
    ],
)
def test_equal_spellings_of_an_authority_are_one_origin(scheme: str, authority: str, read: Origin) -> None:
    assert parse_origin(scheme, authority) == read
    assert read_origin(f"{scheme}://{authority}") == read


@pytest.mark.parametrize(
    "authority", ["", ":80", "a b", "user@host", "host/path", "host:port", "host:80\n", "::1", "host\n", "h:1:2"]
)
def test_what_is_no_host_is_no_origin(authority: str) -> None:
    assert parse_origin("http", authority) is None
    assert read_origin(f"http://{authority}") is None


@pytest.mark.parametrize("header", ["null", "", "127.0.0.1", "file://", "ftp://127.0.0.1", "http:/127.0.0.1", "http://a/"])
def test_an_origin_is_of_a_page_over_http(header: str) -> None:
    assert read_origin(header) is None


def test_hosts_of_a_setting_are_names() -> None:
    assert parse_hosts(" A.example:8443, b.example a.example,::1 ") == ("a.example", "b.example", "[::1]")
    assert parse_hosts("  ") == ()
    for wrong in ("https://a.example", "*.example", "a.example/x"):
        with pytest.raises(ValueError, match=r"example"):
            parse_hosts(wrong)


def test_a_server_is_known_by_what_it_is_bound_to() -> None:
    assert list_served_hosts("192.0.2.1") == ("localhost", "127.0.0.1", "[::1]", "192.0.2.1")
    assert list_served_hosts("::1") == ("localhost", "127.0.0.1", "[::1]")
