"""Whether the bucket of a warehouse keeps earlier versions of its files. pyarrow, which reads and writes them, cannot ask that.

boto3 comes with litellm, which asks models of Amazon by it; an old litellm may be without.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dtef_pipeline.asking.addresses import shown
from dtef_pipeline.errors import WarehouseError

BUCKET_WITHIN_S = 5.0
"""For the connection, and for the answer."""
NO_ACCESS = frozenset({"NoSuchBucket", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"})
"""What a store says where nothing in the bucket can be read. Anything else may be a user who may not ask, or a store that cannot tell."""


class NotKnown(Exception):
    """It cannot be asked here; the message says why, which need not hold for reading and writing."""


class KeysNotFound(NotKnown):
    """boto3 has no keys with which to ask. pyarrow may need none, or have others."""


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
        KeysNotFound: there are no keys, or half of them, or the profile or file that is to have them cannot be had.
        NotKnown: this user, this store or this installation cannot tell.
        WarehouseError: the address is none, or the store cannot be reached, or refuses the bucket or the keys.
    """
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise _not_installed(error) from None
    try:
        client = _client(root, region)
        try:
            return str(client.get_bucket_versioning(Bucket=bucket_of(root)).get("Status", "Off"))
        finally:
            client.close()
    except ImportError as error:
        raise _not_installed(error) from None
    except (ClientError, BotoCoreError, ValueError) as error:
        # What boto3 says has the address in it, and so has the error itself: it is not kept as the cause.
        raise _told(error, _without_password(str(error), endpoint_of(root))) from None


def _not_installed(error: ImportError) -> NotKnown:
    return NotKnown(f"the package {error.name} is not installed")


def _told(error: Exception, said: str) -> NotKnown | WarehouseError:
    """What an error of boto3 means for pyarrow, which reads and writes the tables."""
    from botocore import exceptions as errors

    if isinstance(error, errors.ClientError):
        return WarehouseError(said) if error.response["Error"].get("Code", "") in NO_ACCESS else NotKnown(said)
    no_keys = (errors.NoCredentialsError, errors.PartialCredentialsError, errors.CredentialRetrievalError, errors.SSOError)
    if isinstance(error, (*no_keys, errors.ProfileNotFound, errors.ConfigParseError)):
        return KeysNotFound(said)
    if isinstance(error, errors.ProxyConnectionError | errors.SSLError):  # boto3 has certificates of its own
        return NotKnown(said)
    # A ValueError is of an address that is none. pyarrow refuses the same addresses and regions, but at the first request only.
    unusable = (
        errors.ConnectionError,
        errors.HTTPClientError,
        errors.EndpointProviderError,
        errors.InvalidRegionError,
        ValueError,
    )
    return WarehouseError(said) if isinstance(error, unusable) else NotKnown(said)


def _without_password(said: str, endpoint: str | None) -> str:
    """A message in one line, with the address in it as it may be shown."""
    if endpoint:
        said = said.replace(endpoint, shown(endpoint))
    return re.sub(r"(?<=://)[^\s\"'`]*@", "[...]@", " ".join(said.split()))


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
