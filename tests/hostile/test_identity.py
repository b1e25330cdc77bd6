"""Somebody who wants to be two people: endpoints that vouch for whatever name, and many sessions of one role.

No request leaves this machine: what is for AWS goes to a proxy that notes for whom it is, and refuses it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.lifecycle.changes.present_identity import aws_identity
from airflow_bookmarks.store.bookmark_store import open_store
from tests.conftest import REGION
from tests.lifecycle.shop import Shop

IN_AWS = f"dynamodb.{REGION}.amazonaws.com"
FORGED = "arn:aws:iam::111122223333:user/somebody-else"
ANSWER = (
    '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
    f"<Arn>{FORGED}</Arn><UserId>AIDA</UserId><Account>111122223333</Account></GetCallerIdentityResult>"
    "</GetCallerIdentityResponse>"
)


class Forger(ThreadingHTTPServer):
    """An STS that says what its owner wants, and a proxy that lets nothing out; `asked_for` has who was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked_for: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: Forger

    def do_POST(self) -> None:
        self.server.asked_for.append("the forger")
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER.encode())

    def do_CONNECT(self) -> None:
        self.server.asked_for.append(self.path)
        self.send_error(403)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def forger(aws_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forger]:
    server = Forger()
    thread = Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def by_variable_of_sts(url: str, folder: Path) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL_STS": url}


def by_variable_of_all_services(url: str, folder: Path) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": url}


def by_profile(url: str, folder: Path) -> dict[str, str]:
    config = folder / "config"
    config.write_text(f"[profile forged]\nservices = local\n\n[services local]\nsts =\n  endpoint_url = {url}\n")
    return {"AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "forged"}


def by_rules_of_endpoints(url: str, folder: Path) -> dict[str, str]:
    rules = folder / "sts" / "2011-06-15" / "endpoint-rule-set-1.json"
    rules.parent.mkdir(parents=True)
    endpoint = {"conditions": [], "endpoint": {"url": url, "properties": {}, "headers": {}}, "type": "endpoint"}
    parameters = {
        name: {"builtIn": f"AWS::{name}", "required": False, "type": kind, "documentation": ""}
        for name, kind in (("Region", "String"), ("UseDualStack", "Boolean"), ("UseFIPS", "Boolean"))
    }
    rules.write_text(json.dumps({"version": "1.0", "parameters": parameters, "rules": [endpoint]}))
    return {"AWS_DATA_PATH": str(folder)}


WAYS = [by_variable_of_sts, by_variable_of_all_services, by_profile, by_rules_of_endpoints]


@pytest.mark.parametrize("way", WAYS)
def test_endpoint_that_is_configured_vouches_for_nobody_beside_a_store_in_aws(
    forger: Forger, way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in way(forger.url, tmp_path).items():
        monkeypatch.setenv(name, value)

    assert aws_identity(IN_AWS, REGION) is None

    assert set(forger.asked_for) == {f"sts.{REGION}.amazonaws.com:443"}


def test_endpoint_of_somebody_who_rents_a_name_of_aws_vouches_for_nobody(
    forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "https://a1b2c3.execute-api.eu-west-1.amazonaws.com")
    assert aws_identity(IN_AWS, REGION) is None
    assert set(forger.asked_for) == {f"sts.{REGION}.amazonaws.com:443"}


def test_endpoint_of_sts_in_a_vpc_is_asked(forger: Forger, monkeypatch: pytest.MonkeyPatch) -> None:
    host = f"vpce-0a1b2c-3d4e.sts.{REGION}.vpce.amazonaws.com"
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"https://{host}")
    assert aws_identity(IN_AWS, REGION) is None
    assert set(forger.asked_for) == {f"{host}:443"}


@pytest.mark.parametrize("store", ["dynamo.corp.example:8000", "127.0.0.1.example.com:8000"])
def test_endpoint_on_loopback_vouches_for_nobody_beside_a_store_on_another_machine(
    forger: Forger, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", forger.url)
    assert aws_identity(store, REGION) is None
    assert forger.asked_for == []


@pytest.mark.parametrize("store", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_emulator_on_loopback_has_an_sts_of_its_own(
    forger: Forger, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", forger.url)
    found = aws_identity(store, REGION)
    assert found is not None
    assert found.name == FORGED


# ---- one role, many names


def test_two_sessions_of_a_role_are_one_person(
    moto_url: str,
    aws_environment: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = f"dynamodb://t-{uuid.uuid4().hex}?region={REGION}&endpoint={moto_url}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_url)
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    shop.put("a.txt", "a")
    shop.run()

    def act_as(role: str, session: str) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        sts = boto3.session.Session(region_name=REGION).client("sts", endpoint_url=moto_url)
        arn = f"arn:aws:iam::123456789012:role/{role}"
        keys = sts.assume_role(RoleArn=arn, RoleSessionName=session)["Credentials"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["SecretAccessKey"])
        monkeypatch.setenv("AWS_SESSION_TOKEN", keys["SessionToken"])

    def answer(*words: str, code: int = 0) -> Any:
        assert main(["--store", uri, *words, "--output", "json"]) == code
        said = capsys.readouterr()
        return said.err if code else json.loads(said.out)

    act_as("on-call", "ann")
    answer("protect", "copy", "--reason", "money")
    asked = answer("reset", "copy", "--reason", "wrong rows", "--request")
    act_as("on-call", "bob")
    assert "another person has to approve it" in answer("approve", "copy", asked["id"], "--yes", code=1)
    assert store.head("copy").epoch == 1

    act_as("lead", "ann")
    answer("approve", "copy", asked["id"], "--yes")
    assert store.head("copy").epoch == 2
