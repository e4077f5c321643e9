"""Settings of object stores, by the names of deltalake.

It and the embedded engine read the environment as the tools of a store do, with the exceptions here.
"""

from __future__ import annotations

import os
from typing import Final

#: A region for stores that have none: signatures need one, and deltalake would ask Amazon.
_ANY_REGION: Final = "us-east-1"


def store_options(place: str) -> dict[str, str]:
    """Settings for the tables at a URI, by the names of deltalake, from the variables in docs/operations.md; none for a
    folder."""
    scheme, separator, _ = place.partition("://")
    if not separator:
        return {}
    return _FOR.get(scheme, dict)()


def _of_amazon() -> dict[str, str]:
    options = {}
    endpoint = _first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint != os.environ.get("AWS_ENDPOINT_URL", ""):
        options["AWS_ENDPOINT_URL"] = endpoint
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    region = _first("AWS_REGION", "AWS_DEFAULT_REGION") or (endpoint and _ANY_REGION)
    if region != os.environ.get("AWS_REGION", ""):
        options["AWS_REGION"] = region
    return options


def _of_microsoft() -> dict[str, str]:
    options = {}
    if key := _first("AZURE_STORAGE_KEY"):
        options["AZURE_STORAGE_ACCOUNT_KEY"] = key
    if endpoint := _first("AZURE_STORAGE_SERVICE_ENDPOINT"):
        options |= {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}
    return options


def _first(*names: str) -> str:
    """The first of these variables that is set; else nothing."""
    return next(filter(None, map(os.environ.get, names)), "")


_FOR: Final = {"s3": _of_amazon, "s3a": _of_amazon, "abfss": _of_microsoft}
