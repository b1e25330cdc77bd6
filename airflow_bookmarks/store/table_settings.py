"""Settings of a DynamoDB table that `init` makes: encryption key, deletion protection, tags, stream.

They belong to the table, not to a bookmark. An existing table is compared, and never changed. The schema item notes
what `init` was asked for, so that `check` can tell what the table has lost since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.errors import OptionError

_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]{1,64}")
_TAG_TEXT = re.compile(r"[\w\s+\-=.:/@]*")
_MAX_TAGS = 50
_VIEW = "NEW_AND_OLD_IMAGES"


def check_kms_key(arn: str) -> str:
    """Return the ARN of a key of AWS KMS.

    Raises:
        OptionError: it is another text, e.g. an alias, which may mean another key tomorrow.
    """
    if not _KEY_ARN.fullmatch(arn):
        raise OptionError(
            f"{arn!r} is no ARN of a KMS key. Nothing was made. It reads arn:aws:kms:<region>:<account>:key/<id>; an "
            "alias is not taken."
        )
    return arn


def tags_of(words: Sequence[str]) -> dict[str, str]:
    """Return tags that are given as `name=value`.

    Raises:
        OptionError: one has another form, comes twice, or is one that DynamoDB does not take.

    Example:
        >>> tags_of(["team=data", "cost-center=a=b"])
        {'team': 'data', 'cost-center': 'a=b'}
    """
    tags: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        fits = 0 < len(name) <= 128 and len(value) <= 256 and _TAG_TEXT.fullmatch(word) is not None
        if not sign or not fits or name.lower().startswith("aws:") or name in tags or len(tags) == _MAX_TAGS:
            raise OptionError(
                f"the tag {word!r} is none. Nothing was made. It reads name=value, each name once and not from 'aws:', "
                f"of letters, digits, spaces and + - = . : / @, and there are at most {_MAX_TAGS}."
            )
        tags[name] = value
    return tags


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings to make a table with.

    `kms_key` is the ARN of the key that encrypts it (None: DynamoDB's own). A table with `deletion_protection` can't be
    deleted until that is turned off. With `stream`, DynamoDB Streams delivers each change, with the item before and
    after it.
    """

    kms_key: str | None = None
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False

    @property
    def is_default(self) -> bool:
        """Whether no setting is asked for."""
        return self == DEFAULT

    def request(self) -> dict[str, Any]:
        """Return the parts of CreateTable that ask for this."""
        parts: dict[str, Any] = {}
        if self.kms_key is not None:
            parts["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": self.kms_key}
        if self.deletion_protection:
            parts["DeletionProtectionEnabled"] = True
        if self.tags:
            parts["Tags"] = [{"Key": name, "Value": value} for name, value in self.tags.items()]
        if self.stream:
            parts["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": _VIEW}
        return parts

    def lacking(self, there: FoundSettings) -> list[str]:
        """Describe which of these settings a table lacks; unknown tags are left out."""
        found: list[str] = []
        if self.kms_key not in (None, there.kms_key):
            found.append(f"the key {self.kms_key}")
        if self.deletion_protection and not there.deletion_protection:
            found.append("deletion protection")
        if self.stream and not there.stream:
            found.append(f"a stream of {_VIEW}")
        tags = self.tags if there.tags is None else there.tags
        return found + [f"the tag {name}={value}" for name, value in self.tags.items() if tags.get(name) != value]


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """The present settings of a table. `tags` is None if they can't be read, `kms_key` for DynamoDB's own key."""

    kms_key: str | None
    deletion_protection: bool
    stream: bool
    tags: Mapping[str, str] | None

    @classmethod
    def of(cls, table: Mapping[str, Any], tags: Mapping[str, str] | None) -> FoundSettings:
        """Return what DescribeTable tells of a table, and ListTagsOfResource."""
        return cls(
            table.get("SSEDescription", {}).get("KMSMasterKeyArn"),
            table.get("DeletionProtectionEnabled", False),
            table.get("StreamSpecification", {}).get("StreamViewType") == _VIEW,
            tags,
        )


DEFAULT = TableSettings()
