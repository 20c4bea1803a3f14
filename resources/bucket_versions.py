"""Whether the bucket of a warehouse keeps earlier versions of its files. pyarrow, which reads and writes them, cannot ask that.

boto3 comes with litellm, which asks models of Amazon by it; an old litellm may be without.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dtef_pipeline.errors import WarehouseError

BUCKET_WITHIN_S = 5.0
"""For the connection, and for the answer."""
NO_ACCESS = frozenset({"NoSuchBucket", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"})
"""What a store says where nothing in the bucket can be read. Anything else may be a user who may not ask, or a store that cannot tell."""


class NotKnown(Exception):
    """It cannot be asked here; the message says why, which need not hold for reading and writing."""


def bucket_of(root: str) -> str:
    """The bucket of `s3://bucket/prefix`."""
    return urlsplit(root).netloc.rpartition("@")[2]


def endpoint_of(root: str) -> str | None:
    """The address of a store that is not Amazon's."""
    given = dict(parse_qsl(urlsplit(root).query))
    endpoint = given.get("endpoint_override")
    return endpoint if endpoint is None or "://" in endpoint else f"{given.get('scheme', 'https')}://{endpoint}"


def versioning(root: str, region: str | None) -> str:
    """`Enabled`, `Suspended` (versions are kept that were there before), or `Off`.

    Raises:
        NotKnown: this user, this store or this installation cannot tell.
        WarehouseError: the store cannot be reached, or refuses the bucket or the keys.
    """
    try:
        from botocore import exceptions as errors

        client = _client(root, region)
    except ImportError as error:
        raise NotKnown(f"the package {error.name} is not installed") from None
    try:
        return str(client.get_bucket_versioning(Bucket=bucket_of(root)).get("Status", "Off"))
    except errors.ClientError as error:
        code, said = error.response["Error"].get("Code", ""), " ".join(str(error).split())
        raise (WarehouseError(said) if code in NO_ACCESS else NotKnown(said)) from error
    except (errors.ProxyConnectionError, errors.SSLError) as error:  # boto3 has certificates of its own
        raise NotKnown(" ".join(str(error).split())) from error
    except (errors.ConnectionError, errors.HTTPClientError) as error:
        raise WarehouseError(" ".join(str(error).split())) from error
    except errors.BotoCoreError as error:
        raise NotKnown(" ".join(str(error).split())) from error
    finally:
        client.close()


def _client(root: str, region: str | None) -> Any:
    """One that asks once, for a few seconds, with the keys and the certificates with which pyarrow does."""
    import boto3
    from botocore.config import Config

    parts = urlsplit(root)
    keys: dict[str, Any] = {}
    if parts.username and parts.password:
        keys = {"aws_access_key_id": unquote(parts.username), "aws_secret_access_key": unquote(parts.password)}
    asked_once = Config(
        connect_timeout=BUCKET_WITHIN_S,
        read_timeout=BUCKET_WITHIN_S,
        retries={"total_max_attempts": 1},
        proxies={},  # pyarrow takes none either
    )
    return boto3.Session().client(
        "s3",
        region_name=region or None,
        endpoint_url=endpoint_of(root),
        verify=dict(parse_qsl(parts.query)).get("tls_ca_file_path"),
        config=asked_once,
        **keys,
    )
