"""A warehouse in an object store as `dtef doctor` looks at it: its address, and whether the bucket keeps versions. No table is read."""

from __future__ import annotations

import shlex

from dtef_pipeline.asking import addresses
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.places import elsewhere
from dtef_pipeline.errors import WarehouseError
from resources.bucket_versions import KeysNotFound, NotKnown, bucket_of, endpoint_of, versioning
from resources.file_systems import open_root, without_secrets

_NOT_READ = "its tables are not looked at (`dtef sql 'SHOW TABLES'` asks)"
_GIVE_KEYS = (
    "export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (docs/scale.md), or name in AWS_PROFILE a profile that is in ~/.aws; "
    "unset AWS_PROFILE if it names none. Where the bucket can be used as it is, nothing has to be done"
)


def check_object_store(root: str) -> Diagnosis:
    """Of a URL such as `s3://bucket/prefix`."""
    shown = without_secrets(root)
    try:
        fs, _ = open_root(root)
    except WarehouseError as error:
        return Diagnosis("warehouse", "problem", str(error), _mend_address(error))
    if fs.type_name != "s3":
        return Diagnosis("warehouse", "ok", f"{shown}: {_NOT_READ}")
    try:
        status = versioning(root, fs.region)
    except NotKnown as error:
        found = f"{shown}: {_NOT_READ}; whether the bucket keeps versions is not known: {error}"
        if isinstance(error, KeysNotFound):
            return Diagnosis("warehouse", "warning", found, _GIVE_KEYS)
        return Diagnosis("warehouse", "ok", found)
    except WarehouseError as error:
        return Diagnosis("warehouse", "problem", f"cannot use the warehouse {shown}: {error}", _mend_store())
    if status == "Enabled":
        return Diagnosis("warehouse", "ok", f"{shown}: the bucket keeps versions; {_NOT_READ}")
    found = f"{shown}: versions of the bucket are {status.lower()}, so what is replaced or deleted there cannot be had again"
    return Diagnosis("warehouse", "warning", found, _switch_on(root))


def _switch_on(root: str) -> str:
    endpoint = endpoint_of(root)
    at = f" --endpoint-url {shlex.quote(addresses.shown(endpoint))}" if endpoint else ""
    bucket = shlex.quote(bucket_of(root))
    command = f"aws s3api put-bucket-versioning{at} --bucket {bucket} --versioning-configuration Status=Enabled"
    return f"switch them on (docs/several-machines.md says how long to keep them): {command}"


def _mend_address(error: WarehouseError) -> str:
    """What to do about an address of an object store that cannot be used."""
    if isinstance(error.__cause__, OSError):
        return _mend_store()
    return "name a folder, or an address such as s3://bucket/prefix: export DTEF_WAREHOUSE=PATH"


def _mend_store() -> str:
    return (
        "see whether that server can be reached from here, and whether bucket, endpoint_override and region in the address are right "
        f"(docs/scale.md), and so are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; or {elsewhere('DTEF_WAREHOUSE')}"
    )
