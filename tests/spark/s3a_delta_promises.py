"""Delta tables in S3, under the policy of a job: `test_s3a_delta.py` runs these in a process with s3a and Delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.policies import policy
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.files.s3.iam_gate import Gate, iam_gate
from tests.spark.delta_source_promises import Orders, delta_conf, run
from tests.spark.lake import Lake
from tools.jars import fetch_for_spark

pytestmark = pytest.mark.spark

STATE, LAKE = "state", "lake"
_OF_DATA = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListBucket"]
TABLE = f"s3a://{LAKE}/a b/orders"


def policy_of_a_job() -> dict[str, Any]:
    """Return the policy that is printed for a job that writes under `state_uri` by Spark, and one of its own data."""
    arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/bookmarks"
    made = policy("job", arn, "prod", f"s3a://{STATE}/bookmarks", snapshots=True)
    own = {"Effect": "Allow", "Action": _OF_DATA, "Resource": [f"arn:aws:s3:::{LAKE}", f"arn:aws:s3:::{LAKE}/*"]}
    return {**made, "Statement": [*made["Statement"], own]}


@pytest.fixture(scope="session")
def gate(moto_url: str) -> Iterator[Gate]:
    """Serve S3 under the policy."""
    with iam_gate(moto_url, policy_of_a_job()) as gate:
        yield gate


@pytest.fixture(scope="session")
def more_conf(gate: Gate) -> Mapping[str, str]:
    """Start Spark with s3a and Delta."""
    return {
        **delta_conf(),
        "spark.driver.extraClassPath": f"{fetch_for_spark('s3a')}/*",
        "spark.hadoop.fs.s3a.endpoint": gate.url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "testing",
        "spark.hadoop.fs.s3a.secret.key": "testing",
    }


@pytest.fixture(autouse=True)
def buckets(moto_url: str, aws_session: boto3.session.Session) -> Iterator[None]:
    """Make an empty bucket for the state, and one for the table."""
    s3 = aws_session.resource("s3", endpoint_url=moto_url, region_name="us-east-1")
    made = [s3.Bucket(name) for name in (STATE, LAKE)]
    for bucket in made:
        bucket.create()
    yield
    for bucket in made:
        bucket.objects.delete()
        bucket.delete()


@pytest.fixture
def store(tmp_path: Path, gate: Gate, buckets: None, monkeypatch: pytest.MonkeyPatch) -> BookmarkStore:
    """Open a fresh store with its artifacts in the bucket, reached as from an environment of AWS."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", gate.url)
    gate.refused.clear()
    made = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "prod", state_uri=f"s3a://{STATE}/bookmarks")
    made.init()
    return made


def test_appends_are_read_from_s3_and_looked_for_without_spark(lake: Lake, gate: Gate) -> None:
    orders = Orders(lake.spark, TABLE)
    orders.make("'delta.enableDeletionVectors' = 'true'").add(1, 2)
    orders.sql("DELETE FROM {t} WHERE id = 2")
    orders.add(3)
    assert [run(lake, TABLE, max_files=1) for _ in range(3)] == [[1], [3], []]
    orders.add(4)
    orders.sql("OPTIMIZE {t}")
    assert pending(lake.store, "copy").contexts[0].files == 1
    assert run(lake, TABLE) == [4]
    assert pending(lake.store, "copy").is_empty
    assert examine(lake.store) == []
    assert not gate.refused


def test_store_without_a_state_uri_is_refused_before_anything_is_read(lake: Lake, tmp_path: Path) -> None:
    Orders(lake.spark, TABLE).make("'delta.enableChangeDataFeed' = 'true'").add(1)
    lake.store = BookmarkStore(SqliteTable(tmp_path / "other.db"), "prod")
    lake.store.init()
    with pytest.raises(OptionError, match="has no state_uri"):
        run(lake, TABLE)
    assert run(lake, TABLE, changes=True) == [1]
