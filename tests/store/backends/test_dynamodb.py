"""What `DynamoTable` does when DynamoDB, the network or the settings fail; the rest is in the conformance suite."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3.session
import pytest
from botocore.exceptions import ClientError

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    StateCorruptError,
    StoreAccessError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    TableLayoutError,
    TableMissingError,
)
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.backends.wire import from_wire, to_wire
from airflow_bookmarks.store.table import Attributes, Delete, Equals, Exists, Key, Lacks, Missing, Put, Update
from tests.conftest import REGION
from tests.store.backends.faulty_endpoint import (
    FaultyEndpoint,
    LoseReply,
    LoseRequest,
    Pass,
    ReadNothing,
    Refuse,
    faulty_endpoint,
)
from tools.servers import free_port

HEAD = Key("default#JOB#flights", "HEAD")
RUN = Key("default#JOB#flights", "RUN#0000000001#0000000001")


@dataclass
class FakeTime:
    """Time that passes by sleeping alone."""

    now_s: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_s += seconds


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture(scope="module")
def endpoint(dynamodb_local_url: str) -> Iterator[FaultyEndpoint]:
    with faulty_endpoint(dynamodb_local_url) as endpoint:
        yield endpoint


def open_at(url: str, session: boto3.session.Session, time: FakeTime, **settings: Any) -> DynamoTable:
    details: dict[str, Any] = {"name": f"bookmarks-{uuid.uuid4().hex}", "region": REGION, "endpoint": url} | settings
    return DynamoTable(session=session, sleep=time.sleep, monotonic=time.monotonic, random=lambda: 1.0, **details)


@pytest.fixture
def table(endpoint: FaultyEndpoint, aws_session: boto3.session.Session, time: FakeTime) -> Iterator[DynamoTable]:
    table = open_at(endpoint.url, aws_session, time)
    endpoint.befall()
    table.create()
    endpoint.befall()
    yield table
    endpoint.befall()
    table.close()


# ---- what passes is tried again


@pytest.mark.parametrize(
    "fault",
    [
        Refuse("TransactionCanceledException", reasons=("TransactionConflict", "None")),
        Refuse("TransactionCanceledException", reasons=("None", "ThrottlingError")),
        Refuse("TransactionCanceledException", reasons=("ProvisionedThroughputExceeded", "TransactionConflict")),
        Refuse("TransactionInProgressException"),
        Refuse("ThrottlingException"),
        Refuse("ProvisionedThroughputExceededException"),
        Refuse("RequestLimitExceeded"),
        Refuse("InternalServerError", status=500),
        Refuse("ServiceUnavailable", status=503),
        Refuse("SomethingNew", status=500),
        LoseRequest(),
        LoseReply(),
    ],
)
def test_a_transaction_is_repeated_with_its_token_and_counts_once(
    table: DynamoTable, endpoint: FaultyEndpoint, fault: Any
) -> None:
    endpoint.befall(fault, fault)
    table.transact([Put(HEAD, {"fence": 1}, [Missing()]), Put(RUN, {})])
    assert endpoint.operations == ["TransactWriteItems"] * 3
    assert len({body["ClientRequestToken"] for _, body in endpoint.seen}) == 1
    assert table.get([HEAD]) == {HEAD: {"fence": 1}}


def test_a_given_token_is_the_one_that_is_sent(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    endpoint.befall(Refuse("ThrottlingException"))
    table.transact([Put(HEAD, {})], token="take-1")
    assert [body["ClientRequestToken"] for _, body in endpoint.seen] == ["take-1", "take-1"]


def test_a_lost_reply_to_a_conditional_update_is_no_failed_condition(
    table: DynamoTable, endpoint: FaultyEndpoint
) -> None:
    table.transact([Put(HEAD, {"version": 1})])
    endpoint.befall(LoseReply())
    table.transact([Update(HEAD, set={"version": 2}, conditions=[Equals("version", 1)])])
    assert table.get([HEAD]) == {HEAD: {"version": 2}}


def test_a_failed_condition_beside_a_conflict_is_told_at_once(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    endpoint.befall(Refuse("TransactionCanceledException", reasons=("TransactionConflict", "ConditionalCheckFailed")))
    with pytest.raises(ConditionFailedError) as caught:
        table.transact([Put(HEAD, {}), Put(RUN, {}, [Missing()])])
    assert caught.value.failed == {1: None}
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize("fault", [Refuse("ThrottlingException"), LoseRequest(), LoseReply()])
def test_reads_are_repeated(table: DynamoTable, endpoint: FaultyEndpoint, fault: Any) -> None:
    table.transact([Put(HEAD, {"fence": 1})])
    endpoint.befall(fault)
    assert table.get([HEAD]) == {HEAD: {"fence": 1}}
    endpoint.befall(fault)
    assert list(table.query(HEAD.pk)) == [(HEAD, {"fence": 1})]


def test_keys_that_came_back_unread_are_asked_for_again(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    table.transact([Put(HEAD, {"fence": 1})])
    endpoint.befall(ReadNothing(), ReadNothing())
    assert table.get([HEAD]) == {HEAD: {"fence": 1}}
    assert endpoint.operations == ["BatchGetItem"] * 3


def test_reads_are_consistent(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    table.get([HEAD])
    list(table.query(HEAD.pk))
    (_, get), (_, query) = endpoint.seen
    assert [keys["ConsistentRead"] for keys in get["RequestItems"].values()] == [True]
    assert query["ConsistentRead"] is True


# ---- up to a limit


def test_pauses_double_up_to_five_seconds(table: DynamoTable, endpoint: FaultyEndpoint, time: FakeTime) -> None:
    endpoint.befall(*[Refuse("ThrottlingException")] * 9)
    table.get([HEAD])
    assert time.sleeps == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Refuse("ThrottlingException"), StoreThrottledError),
        (Refuse("ProvisionedThroughputExceededException"), StoreThrottledError),
        (Refuse("InternalServerError", 500), StoreUnavailableError),
        (LoseRequest(), StoreUnavailableError),
    ],
)
def test_an_outage_above_the_limit_says_what_was_tried(
    table: DynamoTable, endpoint: FaultyEndpoint, time: FakeTime, fault: Any, kind: type[StoreUnavailableError]
) -> None:
    endpoint.befall(*[fault] * 100)
    said = r"TransactWriteItems .* 60 s .* Nothing is known to be lost"
    with pytest.raises(StoreUnavailableError, match=said) as raised:
        table.transact([Put(HEAD, {}), Put(RUN, {})])
    assert (raised.type, "throttles" in str(raised.value)) == (kind, kind is StoreThrottledError)
    assert time.now_s == pytest.approx(60)


def test_keys_unread_for_too_long_are_an_outage_and_never_absent_items(
    table: DynamoTable, endpoint: FaultyEndpoint
) -> None:
    endpoint.befall(*[ReadNothing()] * 100)
    with pytest.raises(StoreThrottledError, match="BatchGetItem"):
        table.get([HEAD])


def test_the_limit_can_be_set(endpoint: FaultyEndpoint, aws_session: boto3.session.Session, time: FakeTime) -> None:
    table = open_at(endpoint.url, aws_session, time, outage_limit_s=2.0)
    endpoint.befall(*[Refuse("ServiceUnavailable", 503)] * 100)
    with pytest.raises(StoreUnavailableError):
        table.get([HEAD])
    assert time.now_s == pytest.approx(2)
    table.close()


# ---- what does not pass


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("AccessDeniedException", "IAM"),
        ("UnrecognizedClientException", "access key"),
        ("InvalidSignatureException", "clock"),
        ("ExpiredTokenException", "Renew"),
        ("SignatureDoesNotMatch", "secret key"),
    ],
)
def test_a_refusal_names_the_setting_and_is_not_repeated(
    table: DynamoTable, endpoint: FaultyEndpoint, code: str, advice: str
) -> None:
    endpoint.befall(Refuse(code))
    with pytest.raises(StoreAccessError, match=advice) as caught:
        table.get([HEAD])
    assert code in str(caught.value)
    assert len(endpoint.seen) == 1


def test_another_error_keeps_its_code_and_reason(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    endpoint.befall(Refuse("TransactionCanceledException", reasons=("None", "ValidationError")))
    with pytest.raises(StoreError, match="operation 1: ValidationError injected") as caught:
        table.transact([Put(HEAD, {}), Put(RUN, {})])
    assert isinstance(caught.value.__cause__, ClientError)


def test_an_absent_table_is_named_with_region_and_host(
    endpoint: FaultyEndpoint, aws_session: boto3.session.Session, time: FakeTime
) -> None:
    table = open_at(endpoint.url, aws_session, time, name="not-there")
    endpoint.befall()
    with pytest.raises(
        TableMissingError, match=f"'not-there' in region {REGION} at 127.0.0.1:.*airflow-bookmarks init"
    ):
        table.get([HEAD])
    table.close()


def test_a_table_of_another_region_is_absent(moto_url: str, aws_session: boto3.session.Session, time: FakeTime) -> None:
    here = open_at(moto_url, aws_session, time)
    here.create()
    there = open_at(moto_url, aws_session, time, name=here.describe()["table"], region="us-east-1")
    with pytest.raises(TableMissingError, match="us-east-1"):
        there.get([HEAD])
    here.close()
    there.close()


def test_an_endpoint_where_nothing_answers_is_a_setting_to_fix(
    aws_session: boto3.session.Session, time: FakeTime
) -> None:
    table = open_at(f"http://127.0.0.1:{free_port()}", aws_session, time)
    with pytest.raises(StoreAccessError, match=r"60 s .*'region' and 'endpoint'"):
        table.get([HEAD])
    table.close()


def test_no_region_is_told_before_anything_is_sent(aws_session: boto3.session.Session) -> None:
    with pytest.raises(StoreAccessError, match=r"dynamodb://bookmarks\?region="):
        DynamoTable(name="bookmarks", session=aws_session)


def test_no_credentials_are_told(monkeypatch: pytest.MonkeyPatch, endpoint: FaultyEndpoint) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    table = DynamoTable(name="bookmarks", region=REGION, endpoint=endpoint.url)
    with pytest.raises(StoreAccessError, match="AWS_ACCESS_KEY_ID"):
        table.get([HEAD])
    table.close()


def test_an_unknown_profile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "not-there")
    with pytest.raises(StoreAccessError, match="AWS_PROFILE"):
        DynamoTable(name="bookmarks", region=REGION)


def test_an_endpoint_that_is_no_url_is_told(aws_session: boto3.session.Session) -> None:
    with pytest.raises(StoreAccessError, match="endpoint"):
        DynamoTable(name="bookmarks", region=REGION, endpoint="127.0.0.1:8000", session=aws_session)


# ---- creation


def test_the_table_is_on_demand_with_string_keys_and_expires_items(
    moto_url: str, aws_session: boto3.session.Session, time: FakeTime
) -> None:
    table = open_at(moto_url, aws_session, time)
    table.create()
    client = aws_session.client("dynamodb", endpoint_url=moto_url, region_name=REGION)
    name = table.describe()["table"]
    made = client.describe_table(TableName=name)["Table"]
    assert made["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {a["AttributeType"] for a in made["AttributeDefinitions"]} == {"S"}
    assert made["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    time_to_live = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert time_to_live == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    client.close()
    table.close()


def test_a_store_without_point_in_time_recovery_is_told_in_the_log(
    endpoint: FaultyEndpoint, aws_session: boto3.session.Session, time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    table = open_at(endpoint.url, aws_session, time)
    endpoint.befall()
    with caplog.at_level(logging.WARNING, "airflow_bookmarks.store.backends.dynamodb"):
        assert table.create() is True
    assert "point-in-time recovery" in caplog.text
    table.close()


def test_a_second_creation_changes_nothing(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    endpoint.befall()
    assert table.create() is False
    assert {name for name in endpoint.operations if not name.startswith("Describe")} == set()


def test_a_creation_that_was_cut_short_is_finished_by_the_next(
    endpoint: FaultyEndpoint, aws_session: boto3.session.Session, time: FakeTime
) -> None:
    table = open_at(endpoint.url, aws_session, time)
    # DescribeTable, CreateTable, two more DescribeTable, DescribeTimeToLive; then UpdateTimeToLive is refused.
    endpoint.befall(*[Pass()] * 5, Refuse("AccessDeniedException"))
    with pytest.raises(StoreAccessError, match="UpdateTimeToLive"):
        table.create()
    endpoint.befall()
    assert table.create() is False
    assert "UpdateTimeToLive" in endpoint.operations
    table.close()


def test_a_table_of_another_layout_is_refused_and_left_alone(
    dynamodb_local_url: str, aws_session: boto3.session.Session, time: FakeTime
) -> None:
    client = aws_session.client("dynamodb", endpoint_url=dynamodb_local_url, region_name=REGION)
    table = open_at(dynamodb_local_url, aws_session, time)
    name = table.describe()["table"]
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(TableLayoutError, match="It was left as it is"):
        table.create()
    assert client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"
    client.close()
    table.close()


# ---- values and description


def test_a_single_put_whose_conditions_it_leaves_as_they_are_is_no_transaction(
    table: DynamoTable, endpoint: FaultyEndpoint
) -> None:
    table.transact([Put(HEAD, {})])
    table.transact([Put(HEAD, {"fence": 1}, [Lacks("lease")])])
    table.transact([Put(HEAD, {"fence": 1}, [Exists(), Equals("fence", 1)])])
    table.transact([Put(HEAD, {"fence": 2}, [Equals("fence", 1)])])
    table.transact([Put(RUN, {}, [Missing()])])
    assert endpoint.operations == [*["PutItem"] * 3, *["TransactWriteItems"] * 2]
    assert table.get([HEAD, RUN]) == {HEAD: {"fence": 2}, RUN: {}}


def test_a_single_update_whose_conditions_it_leaves_as_they_are_is_no_transaction(
    table: DynamoTable, endpoint: FaultyEndpoint
) -> None:
    table.transact([Update(HEAD, set={"fence": 1})])
    table.transact([Update(HEAD, set={"until": "noon"}, conditions=[Equals("fence", 1), Lacks("lease"), Exists()])])
    table.transact([Update(HEAD, set={"fence": 2}, conditions=[Equals("fence", 1)])])
    table.transact([Update(HEAD, remove=["until"], conditions=[Equals("until", "noon")])])
    table.transact([Update(HEAD, set={"lease": "mine"}, conditions=[Lacks("lease")])])
    table.transact([Update(RUN, set={"state": "PLANNED"}, conditions=[Missing()])])
    assert endpoint.operations == [*["UpdateItem"] * 2, *["TransactWriteItems"] * 4]
    assert table.get([HEAD, RUN]) == {HEAD: {"fence": 2, "lease": "mine"}, RUN: {"state": "PLANNED"}}


def test_a_single_delete_without_conditions_is_no_transaction(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    table.transact([Put(HEAD, {}), Put(RUN, {})])
    endpoint.befall()
    table.transact([Delete(HEAD)])
    table.transact([Delete(RUN, [Exists()])])
    assert endpoint.operations == ["DeleteItem", "TransactWriteItems"]
    assert table.get([HEAD, RUN]) == {}


@pytest.mark.parametrize(
    "write",
    [
        Put(HEAD, {"fence": 1, "until": "noon"}, [Equals("fence", 1)]),
        Update(HEAD, set={"until": "noon"}, conditions=[Equals("fence", 1)]),
    ],
)
def test_a_write_that_is_no_transaction_is_repeated_after_a_lost_reply(
    table: DynamoTable, endpoint: FaultyEndpoint, write: Put | Update
) -> None:
    table.transact([Put(HEAD, {"fence": 1})])
    endpoint.befall(LoseReply(), Refuse("TransactionConflictException"))
    table.transact([write])
    assert len(endpoint.seen) == 3
    assert table.get([HEAD]) == {HEAD: {"fence": 1, "until": "noon"}}


@pytest.mark.parametrize("there", [{"fence": 2}, None])
def test_a_write_that_is_no_transaction_tells_the_item_that_refused_it(
    table: DynamoTable, endpoint: FaultyEndpoint, there: Attributes | None
) -> None:
    table.transact([Put(HEAD, there)] if there is not None else [Delete(HEAD)])
    endpoint.befall()
    for write in (Put(HEAD, {"fence": 1}, [Equals("fence", 1)]), Update(HEAD, {"a": 1}, (), [Equals("fence", 1)])):
        with pytest.raises(ConditionFailedError) as caught:
            table.transact([write])
        assert caught.value.failed == {0: there}
    assert endpoint.operations == ["PutItem", "UpdateItem"]


def test_names_and_values_never_become_part_of_an_expression(table: DynamoTable, endpoint: FaultyEndpoint) -> None:
    hostile = "x = :v0 OR attribute_exists(pk)"
    table.transact([Update(HEAD, set={hostile: hostile}, conditions=[Missing()])])
    update = endpoint.seen[0][1]["TransactItems"][0]["Update"]
    assert update["UpdateExpression"] == "SET #n0 = :v0"
    assert update["ConditionExpression"] == "attribute_not_exists(pk)"
    assert table.get([HEAD]) == {HEAD: {hostile: hostile}}


@pytest.mark.parametrize("wire", [{"N": "1.5"}, {"SS": ["a"]}, {"M": {"x": {"NS": ["1"]}}}])
def test_a_value_that_was_never_written_is_corrupt_state(wire: dict[str, Any]) -> None:
    with pytest.raises(StateCorruptError, match="attribute 'x'"):
        from_wire(wire, "attribute 'x' of HEAD")


def test_a_float_is_refused() -> None:
    with pytest.raises(StoreError, match="float"):
        to_wire(1.5)  # type: ignore[arg-type]


def test_description_holds_no_secret(aws_session: boto3.session.Session, time: FakeTime) -> None:
    table = open_at("http://user:secret@127.0.0.1:8000", aws_session, time, name="bookmarks")
    assert table.describe() == {"kind": "dynamodb", "table": "bookmarks", "region": REGION, "host": "127.0.0.1:8000"}
    table.close()
