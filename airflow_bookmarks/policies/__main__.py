"""Print a policy: `python -m airflow_bookmarks.policies ROLE --table-arn ARN [--namespace NAME] [--state-uri URI]
[--snapshots] [--kms-key ARN]`.
"""

from __future__ import annotations

import argparse
import json
import sys

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.policies import ROLES, policy


def main() -> int:
    """Print the policy that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser("python -m airflow_bookmarks.policies", description="Print an IAM policy.")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--table-arn", required=True, metavar="ARN")
    parser.add_argument("--namespace", default=DEFAULT_NAMESPACE)
    parser.add_argument("--state-uri", metavar="URI", help="folder in S3 for state that is too large for the table")
    parser.add_argument(
        "--snapshots", action="store_true", help="also what Spark needs to copy tables there (compare='snapshot')"
    )
    parser.add_argument("--kms-key", metavar="ARN", help="key of AWS KMS that encrypts the table")
    given = parser.parse_args()
    try:
        made = policy(
            given.role,
            given.table_arn,
            given.namespace,
            given.state_uri,
            given.kms_key,
            snapshots=given.snapshots,
        )
        print(json.dumps(made, indent=2))
    except BookmarkError as error:
        print(f"{parser.prog}: {escaped(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
