"""IAM policies for the state table: what a reader, a job, an operator and an admin may do. docs/iam.md explains them.

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

ROLES = ("reader", "job", "job-that-rewinds-along", "operator", "admin")

_TABLE_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table/[A-Za-z0-9_.-]{3,255}")


def policy(role: str, table_arn: str, namespace: str = DEFAULT_NAMESPACE) -> dict[str, Any]:
    """Return the policy of one role for one namespace of one table.

    Args:
        role: one of `ROLES`.
        table_arn: `arn:aws:dynamodb:<region>:<account>:table/<name>`.

    Raises:
        OptionError: no such role, or no ARN of a table. NameInvalidError: the namespace is no name.

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
    made: dict[str, Any] = json.loads(template.replace("TABLE_ARN", table_arn).replace("NAMESPACE", namespace))
    return made
