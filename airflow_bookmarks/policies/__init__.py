"""IAM policies for the state table: what a reader, a job, an operator and an admin may do.

docs/operations/iam.md explains them.

Example:
    $ python -m airflow_bookmarks.policies job --table-arn arn:aws:dynamodb:eu-west-1:111122223333:table/bookmarks
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE, check_name
from airflow_bookmarks.store.object_store import check_state_uri, is_in_s3
from airflow_bookmarks.store.table_settings import check_kms_key

ROLES = ("reader", "job", "job-that-rewinds-along", "operator", "admin")

_TABLE_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table/[A-Za-z0-9_.-]{3,255}")


# What each role needs of the objects under state_uri. A role that runs jobs, or changes a position, may have to put
# some.
_OBJECT_ACTIONS = {
    "reader": ["s3:GetObject"],
    "admin": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
}
_OF_WRITERS = ["s3:GetObject", "s3:PutObject"]


# What each role needs of the key that encrypts the table. DynamoDB uses it in the name of its caller.
_READING_BY_KEY = ["kms:Decrypt", "kms:DescribeKey"]
_WRITING_BY_KEY = [*_READING_BY_KEY, "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
_KEY_ACTIONS = {"reader": _READING_BY_KEY, "admin": ["kms:CreateGrant", *_WRITING_BY_KEY]}


def policy(
    role: str,
    table_arn: str,
    namespace: str = DEFAULT_NAMESPACE,
    state_uri: str | None = None,
    kms_key: str | None = None,
    *,
    snapshots: bool = False,
) -> dict[str, Any]:
    """Return the policy of one role for one namespace of one table.

    Args:
        role: one of `ROLES`.
        table_arn: `arn:aws:dynamodb:<region>:<account>:table/<name>`.
        state_uri: the folder in S3 for state that is too large for the table; None: there is none.
        kms_key: the ARN of the key that encrypts the table; None: DynamoDB's own, for which nobody needs a right.
        snapshots: also allow what Spark needs to copy tables to `state_uri`, for `compare="snapshot"`.

    Raises:
        OptionError: no such role, no ARN of a table or key, no folder in S3, or `snapshots` for a reader or without
            a `state_uri`. NameInvalidError: the namespace is no name.

    Example:
        >>> made = policy("reader", "arn:aws:dynamodb:eu-west-1:111122223333:table/bookmarks", "prod")
        >>> made["Statement"][0]["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"][0]
        'prod#JOB#*'
    """
    if role not in ROLES:
        raise OptionError(f"there is no policy for {role!r}. Nothing was made. Take one of {', '.join(ROLES)}.")
    if not _TABLE_ARN.fullmatch(table_arn):
        raise OptionError(
            f"{table_arn!r} is no ARN of a DynamoDB table. Nothing was made. It reads "
            "arn:aws:dynamodb:<region>:<account>:table/<name>."
        )
    check_name("namespace", namespace)
    template = files(__name__).joinpath(f"{role}.json").read_text("utf-8")
    given = {"TABLE_ARN": table_arn, "NAMESPACE": namespace}
    # In one go: the name of a table may hold the other word.
    made: dict[str, Any] = json.loads(re.sub("|".join(given), lambda word: given[word[0]], template))
    if snapshots and (state_uri is None or role == "reader"):
        why = "a reader takes no snapshots of tables" if role == "reader" else "snapshots of tables lie under state_uri"
        raise OptionError(f"{why}. Nothing was made. Leave out --snapshots, or name another role and --state-uri.")
    if state_uri is not None:
        made["Statement"] += _object_statements(role, table_arn.split(":")[1], namespace, state_uri, snapshots)
    if kms_key is not None:
        made["Statement"].append(_key_statement(role, table_arn, check_kms_key(kms_key)))
    return made


def _key_statement(role: str, table_arn: str, kms_key: str) -> dict[str, Any]:
    _, partition, _, region, _ = table_arn.split(":", 4)
    domain = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return {
        "Sid": "UseTheKeyOfTheTable",
        "Effect": "Allow",
        "Action": _KEY_ACTIONS.get(role, _WRITING_BY_KEY),
        "Resource": kms_key,
        # By way of DynamoDB alone: with the right itself nothing can be decrypted that lies elsewhere.
        "Condition": {"StringEquals": {"kms:ViaService": f"dynamodb.{region}.{domain}"}},
    }


def _object_statements(
    role: str, partition: str, namespace: str, state_uri: str, snapshots: bool
) -> list[dict[str, Any]]:
    checked = check_state_uri(state_uri)
    if not is_in_s3(checked):
        raise OptionError(f"state_uri={state_uri!r} is no folder in S3, so no IAM policy is needed. Nothing was made.")
    bucket, _, prefix = checked.partition("://")[2].partition("/")
    _, artifacts = folders = [f"{prefix}/{namespace}/{kind}/".lstrip("/") for kind in ("blobs", "artifacts")]
    arn = f"arn:{partition}:s3:::{bucket}"
    statements: list[dict[str, Any]] = [
        {
            "Sid": "LargeState",
            "Effect": "Allow",
            "Action": _OBJECT_ACTIONS.get(role, _OF_WRITERS),
            "Resource": [f"{arn}/{folder}*" for folder in folders],
        },
        {
            "Sid": "ListLargeState",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": [f"{folder}*" for folder in folders]}},
        },
    ]
    return [*statements, *(_snapshot_statements(arn, artifacts) if snapshots else [])]


def _snapshot_statements(arn: str, artifacts: str) -> list[dict[str, Any]]:
    """Return what Spark's S3A needs besides to write a folder: it moves files by a copy and a delete, and looks whether
    keys are there.

    S3 answers "not there" only to who may list the bucket without a prefix, and "forbidden", which ends S3A, to others.
    """
    return [
        {
            "Sid": "WriteSnapshots",
            "Effect": "Allow",
            "Action": ["s3:DeleteObject", "s3:AbortMultipartUpload"],
            "Resource": f"{arn}/{artifacts}*",
        },
        {
            "Sid": "TellMissingFromForbidden",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"Null": {"s3:prefix": "true"}},
        },
    ]
