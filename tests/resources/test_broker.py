"""Addresses of a broker: what is wrong with them is told without their password."""

from __future__ import annotations

import pytest

from resources.broker import fault, shown, without_password

PLANTED = "planted-7f3a9c"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{PLANTED}/x@h:6379/0",
        f"redis://:9?{PLANTED}@h",
        f"redis://me:12/{PLANTED}@h/0",
        PLANTED,
        "redis://[h",
        f"redis://me:12#{PLANTED}@h",
        f"amqp://{PLANTED}:1/x@h",
        f"redis://:a;{PLANTED}@h",
    ],
)
def test_nothing_is_shown_of_what_is_no_address(url: str) -> None:
    wrong = fault(url)
    assert wrong is not None
    assert PLANTED not in str(wrong)
    assert shown(url) is None
    assert without_password(f"refused {url}", url) == "[...]"


def test_with_tls_an_address_needs_what_celery_wants() -> None:
    wrong = fault(f"rediss://:{PLANTED}@127.0.0.1:1/0")
    assert wrong is not None
    assert "ssl_cert_reqs=required" in wrong.remedy
    assert PLANTED not in str(wrong)
    assert fault(f"rediss://:{PLANTED}@127.0.0.1:1/0?ssl_cert_reqs=required") is None
