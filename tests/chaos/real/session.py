"""A boto3 session that has read what it needs of DynamoDB's model, which takes longer than most drivers of these tests.

Imported by the server that driver processes are forked from, before it forks any.
"""

from __future__ import annotations

import boto3.session

SESSION = boto3.session.Session()
SESSION.client("dynamodb", region_name="eu-west-1").close()
