"""When two names may be those of one person."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.text.identity import Identity, may_be_one_person

ROLE = "arn:aws:sts::111122223333:assumed-role/on-call"
LOGIN = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Operator_0a1b2c3d4e5f"
USER = "arn:aws:iam::111122223333:user"
FEDERATED = "arn:aws:sts::111122223333:federated-user"
ROOT = "arn:aws:iam::111122223333:root"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann", "Ann"),
        (f"{USER}/ann", f"{USER}/ann"),
        (ROOT, ROOT),
        (f"{ROLE}/ann", f"{ROLE}/bob"),
        (f"{ROLE}/a/b", f"{ROLE}/a"),
        (
            f"{ROLE}/ann",
            f"{ROLE.upper().replace('ARN:AWS:STS', 'arn:aws:sts').replace('ASSUMED-ROLE', 'assumed-role')}/x",
        ),
        (f"{LOGIN}/ann@example.com", f"{LOGIN}/Ann@example.com"),
        (f"{LOGIN}/ann", "arn:aws:sts::444455556666:assumed-role/AWSReservedSSO_Reader_ffff/ann"),
        (f"{LOGIN}/ann", "ann"),  # the login of Airflow may be that of the same directory
        (f"{FEDERATED}/ann", f"{FEDERATED}/bob"),
        (f"{FEDERATED}/ann", f"{USER}/bob"),
        (ROOT, f"{FEDERATED}/bob"),
    ],
)
def test_names_that_one_person_can_have_are_one_person(one: str, other: str) -> None:
    assert may_be_one_person(one, other)
    assert may_be_one_person(other, one)
    assert Identity(one, True, "aws").is_same(Identity(other, True, "aws"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann", "bob"),
        (f"{USER}/ann", f"{USER}/bob"),
        (f"{USER}/ann", f"{USER}/team/ann"),
        (f"{USER}/ann", "arn:aws:iam::444455556666:user/ann"),
        (f"{USER}/ann", ROOT),
        (f"{ROLE}/ann", "arn:aws:sts::444455556666:assumed-role/on-call/ann"),
        (f"{ROLE}/ann", f"{ROLE}-lead/ann"),
        (f"{LOGIN}/ann", f"{LOGIN}/bob"),
        (f"{LOGIN}/ann", f"{ROLE}/ann"),
        (f"{FEDERATED}/ann", "arn:aws:iam::444455556666:user/ann"),
        (f"{FEDERATED}/ann", f"{ROLE}/ann"),  # a role gets no federation token
        (f"{FEDERATED}/ann", "ann"),
    ],
)
def test_names_that_nobody_can_have_together_are_two_people(one: str, other: str) -> None:
    assert not may_be_one_person(one, other)
    assert not may_be_one_person(other, one)
