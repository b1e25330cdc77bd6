"""What `init` asks of a table in DynamoDB: key, deletion protection, tags, stream."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.store.table_settings import check_kms_key, tags_of
from tests.conftest import REGION

KEY = f"arn:aws:kms:{REGION}:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
ALL = ["--kms-key", KEY, "--deletion-protection", "--tag", "team=data", "--tag", "env=prod", "--stream"]

pytestmark = pytest.mark.usefixtures("aws_environment")


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex}"


def init(url: str, name: str, *words: str) -> int:
    return main(["init", "--store", f"dynamodb://{name}?region={REGION}&endpoint={url}", *words])


def described(url: str, name: str) -> Any:
    client = boto3.session.Session().client("dynamodb", region_name=REGION, endpoint_url=url)
    table: Any = client.describe_table(TableName=name)["Table"]
    table["Tags"] = client.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    client.close()
    return table


def test_table_is_made_with_what_init_asks_for(moto_url: str, name: str) -> None:
    assert init(moto_url, name, *ALL) == 0
    found = described(moto_url, name)
    assert found["SSEDescription"]["KMSMasterKeyArn"] == KEY
    assert found["DeletionProtectionEnabled"] is True
    assert found["Tags"] == [{"Key": "team", "Value": "data"}, {"Key": "env", "Value": "prod"}]
    assert found["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert init(moto_url, name, *ALL) == 0  # it can be repeated


@pytest.mark.dynamodb_local
def test_local_server_makes_it_with_a_stream_and_deletion_protection(dynamodb_local_url: str, name: str) -> None:
    assert init(dynamodb_local_url, name, "--deletion-protection", "--stream") == 0
    assert init(dynamodb_local_url, name, "--deletion-protection", "--stream") == 0


def test_table_that_is_there_without_it_is_left_as_it_is(
    moto_url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(moto_url, name) == 0
    before = described(moto_url, name)
    assert init(moto_url, name, *ALL) == 1
    said = capsys.readouterr().err
    for lacking in (KEY, "deletion protection", "a stream of", "the tag team=data", "the tag env=prod"):
        assert lacking in said
    assert described(moto_url, name) == before
    assert init(moto_url, name) == 0


def details(url: str, name: str, capsys: pytest.CaptureFixture[str], verb: str = "check") -> tuple[dict[str, Any], str]:
    """Return what a verb shows as JSON, and what it says on stderr."""
    capsys.readouterr()
    assert main([verb, "--store", f"dynamodb://{name}?region={REGION}&endpoint={url}", "--output", "json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


@pytest.mark.parametrize("verb", ["init", "check"])
def test_key_protection_and_tags_of_the_table_are_shown(
    moto_url: str, name: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(moto_url, name, *ALL) == 0
    found, said = details(moto_url, name, capsys, verb)
    assert (found["kms_key"], found["deletion_protection"], found["stream"]) == (KEY, True, True)
    assert found["tags"] == {"team": "data", "env": "prod"}
    assert found.get("lost", []) == []
    assert said == ""
    assert main([verb, "--store", f"dynamodb://{name}?region={REGION}&endpoint={moto_url}"]) == 0
    assert KEY in capsys.readouterr().out


def test_table_that_has_lost_what_it_was_made_with_is_warned_of(
    moto_url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(moto_url, name, *ALL) == 0
    client = boto3.session.Session().client("dynamodb", region_name=REGION, endpoint_url=moto_url)
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.untag_resource(ResourceArn=described(moto_url, name)["TableArn"], TagKeys=["env"])
    client.close()

    found, said = details(moto_url, name, capsys)

    assert found["lost"] == ["deletion protection", "the tag env=prod"]
    assert found["deletion_protection"] is False
    assert "warning: the table was created with deletion protection, the tag env=prod" in said
    assert init(moto_url, name, "--kms-key", KEY, "--tag", "team=data") == 0  # what it shall have from now on
    assert details(moto_url, name, capsys) == ({**found, "lost": []}, "")


def test_table_that_was_made_without_a_word_has_lost_nothing(
    moto_url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(moto_url, name) == 0
    found, said = details(moto_url, name, capsys)
    assert (found["kms_key"], found["deletion_protection"], found["tags"]) == ("DynamoDB's own", False, {})
    assert (found["lost"], said) == ([], "")


@pytest.mark.dynamodb_local
def test_local_server_tells_its_deletion_protection(
    dynamodb_local_url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(dynamodb_local_url, name, "--deletion-protection") == 0
    found, _ = details(dynamodb_local_url, name, capsys)
    assert (found["deletion_protection"], found["lost"]) == (True, [])


def test_file_shows_no_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--store", f"sqlite:///{tmp_path / 'b.db'}", "--output", "json"]) == 0
    assert not {"kms_key", "lost", "settings"} & json.loads(capsys.readouterr().out).keys()


def test_file_has_no_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.db"
    assert main(["init", "--store", f"sqlite:///{file}", "--deletion-protection"]) == 1
    assert "an SQLite file has no encryption key" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("arn", ["alias/state", KEY.replace("key/", "alias/"), "0a1b2c3d", KEY + "\n"])
def test_key_is_named_by_its_arn_alone(arn: str) -> None:
    with pytest.raises(OptionError, match="is no ARN of a KMS key"):
        check_kms_key(arn)


@pytest.mark.parametrize(
    "words",
    [["team"], ["=x"], ["aws:x=1"], ["a=1", "a=2"], ["a=\x1b"], ["a" * 129 + "=1"], ["a=" + "b" * 257]],
)
def test_tag_that_dynamodb_does_not_take_is_refused(words: list[str]) -> None:
    with pytest.raises(OptionError, match="Nothing was made"):
        tags_of(words)


def test_tags_are_fifty_at_most() -> None:
    words = [f"name{number}=x" for number in range(51)]
    assert len(tags_of(words[:50])) == 50
    with pytest.raises(OptionError):
        tags_of(words)
