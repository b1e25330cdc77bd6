"""The state store of the demo: a local server with the API of DynamoDB, or one SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.servers import moto_server

KINDS = ("dynamodb", "sqlite")

# Credentials that open nothing; those of whoever starts the demo are hidden from it.
AWS_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}
AWS_HIDDEN = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


@contextmanager
def running_store(kind: str, bookmarks: Path) -> Iterator[str]:
    """Yield the URI of an empty store; a server that is needed for it ends with the block."""
    if kind == "sqlite":
        yield f"sqlite:///{bookmarks}"
        return
    with moto_server() as url:
        yield f"dynamodb://bookmarks?region=us-east-1&endpoint={url}"
