"""Copies of tables in S3, under the policy that is printed for a job: `test_s3a_snapshot.py` runs these in a process
with s3a and the driver of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.policies import policy
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.databases.servers import new_database
from tests.files.s3.iam_gate import Gate, iam_gate
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.spark.lake import Lake
from tools.jars import fetch, fetch_for_spark

pytestmark = pytest.mark.spark

BUCKET = "state"


def policy_of_a_job(**more: Any) -> dict[str, Any]:
    arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/bookmarks"
    return policy("job", arn, "prod", f"s3a://{BUCKET}/bookmarks", **more)


@pytest.fixture(scope="session")
def gate(moto_url: str) -> Iterator[Gate]:
    """Serve S3 under the policy of a job that compares tables."""
    with iam_gate(moto_url, policy_of_a_job(snapshots=True)) as gate:
        yield gate


@pytest.fixture(scope="session")
def more_conf(gate: Gate) -> Mapping[str, str]:
    """Start Spark with s3a and the driver of PostgreSQL."""
    return {
        "spark.driver.extraClassPath": f"{fetch_for_spark('s3a')}/*",
        "spark.jars": ",".join(str(jar) for jar in sorted(fetch("postgresql").glob("*.jar"))),
        "spark.hadoop.fs.s3a.endpoint": gate.url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "testing",
        "spark.hadoop.fs.s3a.secret.key": "testing",
    }


@pytest.fixture
def bucket(moto_url: str, aws_session: boto3.session.Session) -> Iterator[Any]:
    """Make an empty bucket, and look at it past the gate."""
    made = aws_session.resource("s3", endpoint_url=moto_url, region_name="us-east-1").Bucket(BUCKET)
    made.create()
    yield made
    made.objects.delete()
    made.delete()


@pytest.fixture
def store(tmp_path: Path, gate: Gate, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> BookmarkStore:
    """Open a fresh store with its artifacts in the bucket, reached as from an environment of AWS."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", gate.url)
    monkeypatch.setattr(gate, "policy", policy_of_a_job(snapshots=True))
    gate.refused.clear()
    made = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "prod", state_uri=f"s3a://{BUCKET}/bookmarks")
    made.init()
    return made


@pytest.fixture
def shop(request: pytest.FixtureRequest, lake: Lake) -> Iterator[Shop]:
    """Make a table with two prices."""
    with new_database(request.getfixturevalue("postgresql_server")) as login:
        made = Shop(login)
        lake.store.databases = KnownLogin(login)
        made.run("CREATE TABLE prices (id int, price int)")
        made.run("INSERT INTO prices VALUES (1, 10), (2, 20)")
        yield made


def run(lake: Lake) -> list[tuple[Any, ...]]:
    with lake.job() as job:
        frame = job.read("prices").jdbc("conn:shop", "prices", keys=["id"], compare="snapshot")
        return sorted(tuple(row) for row in frame.collect())


def copies_in(bucket: Any) -> set[str]:
    return {item.key.rpartition("/")[0] for item in bucket.objects.all()}


@pytest.mark.often
def test_job_may_take_compare_and_drop_copies(lake: Lake, shop: Shop, bucket: Any) -> None:
    assert run(lake) == [(1, 10, "insert"), (2, 20, "insert")]
    first = copies_in(bucket)
    assert run(lake) == []
    assert copies_in(bucket) == first  # that of a run without a change is gone
    shop.run("UPDATE prices SET price = 11 WHERE id = 1")
    assert run(lake) == [(1, 11, "update")]
    assert len(copies_in(bucket)) == 2


@pytest.mark.parametrize("sid", ["WriteSnapshots", "TellMissingFromForbidden"])
def test_job_without_one_of_the_statements_commits_nothing(
    lake: Lake, shop: Shop, gate: Gate, monkeypatch: pytest.MonkeyPatch, sid: str
) -> None:
    whole = gate.policy
    monkeypatch.setattr(gate, "policy", {"Statement": [each for each in whole["Statement"] if each.get("Sid") != sid]})
    with pytest.raises(Exception, match="AccessDenied"):
        run(lake)
    assert gate.refused

    monkeypatch.setattr(gate, "policy", whole)
    assert run(lake) == [(1, 10, "insert"), (2, 20, "insert")]
