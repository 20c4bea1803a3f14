"""`dtef doctor` on a warehouse in a bucket: an S3 server that keeps versions or not, is away, or does not let this user ask."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from dtef_pipeline.cli import asked_bucket
from dtef_pipeline.cli.asked_bucket import check_object_store
from resources.file_systems import open_root
from tests import s3_server
from tests.dtef_pipeline.cli.test_doctor import findings
from tests.several_machines import BUCKET, CREDENTIALS, s3_client, s3_with_bucket

PLANTED = "planted-7f3a9c"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3_server.Server]:
    with s3_with_bucket(tmp_path_factory.mktemp("s3")) as server:
        s3_client(server.port).create_bucket(Bucket="plain")
        yield server


def address(bucket: str, port: int) -> str:
    return f"s3://{bucket}/warehouse?endpoint_override=127.0.0.1:{port}&scheme=http"


def test_a_bucket_that_keeps_versions_is_in_order_and_is_only_asked(server: s3_server.Server) -> None:
    server.forget()
    row = check_object_store(address(BUCKET, server.port))
    assert (row.state, row.found.partition(";")[0]) == ("ok", f"s3://{BUCKET}/warehouse: the bucket keeps versions")
    assert server.requests == [("GET", f"/{BUCKET}", "versioning")]


def test_one_that_keeps_none_is_a_warning_of_the_command_until_its_remedy_is_followed(
    server: s3_server.Server, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTEF_WAREHOUSE", address("plain", server.port))
    row = findings()["warehouse"]
    assert row["state"] == "warning"
    assert row["found"].startswith("s3://plain/warehouse: versions of the bucket are off, so what is replaced or deleted ")
    assert row["remedy"].endswith(
        f": aws s3api put-bucket-versioning --endpoint-url http://127.0.0.1:{server.port} --bucket plain "
        "--versioning-configuration Status=Enabled"
    )
    client = s3_client(server.port)
    for status, told in (("Enabled", "keeps versions"), ("Suspended", "are suspended")):
        client.put_bucket_versioning(Bucket="plain", VersioningConfiguration={"Status": status})
        assert told in check_object_store(address("plain", server.port)).found


def test_a_bucket_that_is_not_there_or_a_server_that_is_away_is_a_problem(server: s3_server.Server) -> None:
    row = check_object_store(address("nobodys", server.port))
    assert (row.state, "NoSuchBucket" in row.found) == ("problem", True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = probe.getsockname()[1]
    row = check_object_store(address(BUCKET, nobody).replace("//", f"//{PLANTED}:{PLANTED}@", 1))
    assert row.state == "problem"
    assert row.found.startswith(f"cannot use the warehouse s3://{BUCKET}/warehouse: Could not connect to the endpoint URL")
    assert row.remedy.startswith("see whether that server can be reached")
    assert PLANTED not in str(row)


def test_where_this_user_may_not_ask_nothing_is_wrong(server: s3_server.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: BaseClient, operation: str, _: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    row = check_object_store(address(BUCKET, server.port))
    assert (row.state, "whether the bucket keeps versions is not known: An error occurred (AccessDenied)" in row.found) == (
        "ok",
        True,
    )


def test_without_boto3_it_is_not_known(server: s3_server.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    row = check_object_store(address(BUCKET, server.port))
    assert row.state == "ok"
    assert row.found.endswith("is not known: the package boto3 is not installed")


def test_keys_in_the_address_are_those_that_are_used(server: s3_server.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    without_keys(monkeypatch)
    with_keys = address(BUCKET, server.port).replace("//", "//testing:testing@", 1)
    row = check_object_store(with_keys)
    assert (row.state, "the bucket keeps versions" in row.found) == ("ok", True)


def test_without_keys_it_is_a_warning_with_what_to_set(
    server: s3_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That was in order, even where no server was there."""
    without_keys(monkeypatch)
    row = check_object_store(address(BUCKET, server.port))
    assert (row.state, row.found.endswith("is not known: Unable to locate credentials")) == ("warning", True)
    assert row.remedy.startswith("export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    row = check_object_store(address(BUCKET, server.port))
    assert (row.state, "missing: AWS_SECRET_ACCESS_KEY" in row.found) == ("warning", True)
    (tmp_path / "config").write_text("[x", encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    row = check_object_store(address(BUCKET, server.port))
    assert (row.state, "Unable to parse config file" in row.found) == ("warning", True)


def test_a_profile_that_is_not_there_takes_no_other_line_away(
    server: s3_server.Server, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTEF_WAREHOUSE", address(BUCKET, server.port))
    monkeypatch.setenv("AWS_PROFILE", "nope")
    rows = findings()
    assert {"warehouse", "landing folder", "free disk space"} <= set(rows)
    assert rows["warehouse"]["state"] == "warning"
    assert "The config profile (nope) could not be found" in rows["warehouse"]["found"]
    assert "unset AWS_PROFILE" in rows["warehouse"]["remedy"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("endpoint_override=127.0.0.1:abc&scheme=http", "Custom endpoint `http://127.0.0.1:abc` was not a valid URI"),
        ("endpoint_override=my_host:9000&scheme=http", "Invalid endpoint: http://my_host:9000"),
        ("endpoint_override=127.0.0.1:1&scheme=http&region=bad_region!", "Provided region_name 'bad_region!' doesn't match"),
    ],
)
def test_an_address_that_is_none_is_a_problem_as_it_is_for_pyarrow(
    server: s3_server.Server, monkeypatch: pytest.MonkeyPatch, parameters: str, told: str
) -> None:
    root = f"s3://{BUCKET}/warehouse?{parameters}"
    fs, path = open_root(root)
    with pytest.raises(OSError, match=r"VALIDATION|code 103"):
        fs.get_file_info(path)
    row = check_object_store(root)
    assert (row.state, told in row.found) == ("problem", True), row
    assert row.remedy.startswith("see whether that server can be reached")


@pytest.mark.parametrize("password", [PLANTED, f"pa@{PLANTED}", f"a/{PLANTED}"])
def test_a_password_of_the_stores_address_is_not_shown(server: s3_server.Server, password: str) -> None:
    row = check_object_store(f"s3://{BUCKET}/warehouse?endpoint_override=http://user:{password}@127.0.0.1:1")
    assert (row.state, "http://[...]@127.0.0.1:1" in row.found) == ("problem", True), row
    assert PLANTED not in str(row)


def test_a_password_of_the_stores_address_is_not_in_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_bucket, "versioning", lambda *_: "Off")
    row = check_object_store(f"s3://{BUCKET}/warehouse?endpoint_override=http://user:{PLANTED}@127.0.0.1:1")
    assert (row.state, "--endpoint-url 'http://[...]@127.0.0.1:1' --bucket" in row.remedy) == ("warning", True), row
    assert PLANTED not in str(row)


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
