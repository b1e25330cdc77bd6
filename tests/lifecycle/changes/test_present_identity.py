"""Who sits at the command line: found out by AWS or the operating system, never said."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.lifecycle.changes.present_identity import present_identity
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.conftest import REGION
from tests.lifecycle.shop import Shop

PROJECT = Path(__file__).resolve().parents[2]
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def uri(moto_url: str) -> str:
    """Name a new table in moto."""
    uri = f"dynamodb://t-{uuid.uuid4().hex}?region={REGION}&endpoint={moto_url}"
    open_store(uri).init()
    return uri


def person(name: str, url: str) -> dict[str, str]:
    """Make an IAM user with a key; return the environment of whoever has it."""
    iam = boto3.session.Session(region_name=REGION).client("iam", endpoint_url=url)
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        "AWS_ENDPOINT_URL_STS": url,
    }


def sit_down(patch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        patch.setenv(name, value)


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["--store", uri, *words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_user_of_the_operating_system_is_who_the_process_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    who = present_identity(open_store(f"sqlite:///{tmp_path}/b.db?create=true"))
    assert (who.name, who.is_authenticated, who.kind) == (ME, True, "os")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user that has no name")
def test_user_without_a_name_is_a_number() -> None:
    script = "import os\nfrom airflow_bookmarks.lifecycle.changes.present_identity import os_identity\n"
    script += "os.setuid(54321)\nprint(os_identity().name)"  # after the imports: others may not read the project

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT)

    assert done.stdout.strip() == "uid:54321"


def test_aws_caller_is_who_sts_says(moto_url: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"ada-{uuid.uuid4().hex}"
    sit_down(monkeypatch, person(name, moto_url))
    who = present_identity(open_store(uri))
    assert who.name.endswith(f":user/{name}")
    assert (who.is_authenticated, who.kind) == (True, "aws")


def test_credentials_of_a_connection_come_before_those_of_the_environment(moto_url: str, uri: str) -> None:
    name = f"conn-{uuid.uuid4().hex}"
    given = person(name, moto_url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_STS", moto_url)
        assert present_identity(open_store(uri), given).name.endswith(f":user/{name}")


def test_caller_that_sts_does_not_know_is_a_name_only(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")  # nothing listens there
    who = present_identity(open_store(uri))
    assert (who.name, who.is_authenticated) == (ME, False)


def test_emulator_of_dynamodb_is_no_reason_to_ask_aws(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # a request to AWS would take its time, and fail
    assert not present_identity(open_store(uri)).is_authenticated


def test_protected_job_is_changed_by_two_people_with_two_keys(
    moto_url: str, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store: BookmarkStore = open_store(uri)
    shop = Shop(tmp_path, store)
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    ann, bob = (f"{name}-{uuid.uuid4().hex}" for name in ("ann", "bob"))
    keys = {name: person(name, moto_url) for name in (ann, bob)}
    sit_down(monkeypatch, keys[ann])
    answer(uri, capsys, "protect", "copy", "--reason", "money")
    asked = answer(uri, capsys, "rewind", "copy", "--to", "1", "--reason", "wrong rows", "--request")
    assert asked["who"].endswith(f":user/{ann}")
    assert main(["--store", uri, "approve", "copy", asked["id"], "--yes"]) == 1
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    assert main(["--store", uri, "approve", "copy", asked["id"], "--yes"]) == 1
    assert "not an authenticated identity" in capsys.readouterr().err

    sit_down(monkeypatch, keys[bob])
    done = answer(uri, capsys, "approve", "copy", asked["id"], "--yes")

    assert (done["to_run"], done["approved_by"].endswith(f":user/{bob}")) == (1, True)
    (rewound,) = [event for event in store.events("copy") if event["kind"] == "rewind"]
    assert ann in str(rewound["who"])
    assert bob in str(rewound["who"])
