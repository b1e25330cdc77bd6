"""The statements of a load into Redshift: their exact text, by the grammar of Redshift. No server has run them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot

from airflow_bookmarks.core.database.copy.columns import CopyColumn
from airflow_bookmarks.core.database.copy.load import CopyLoad, options_of, role_of
from airflow_bookmarks.core.database.copy.token import CopyToken, burn_copies, lock_copies
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey

JOB = Territory("prod", "orders.load")
NAME = StageName.of(JOB, RunKey(12, 15), "dim")
TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "char(3)", "date", "timestamp")
COLUMNS = tuple(CopyColumn.of(f"a {kind}", kind) for kind in (*TYPES, "decimal(10,2)"))
ROLE = "arn:aws:iam::123456789012:role/load"
LOAD = CopyLoad(
    SinkTable("public", "Orders 2013"),
    COLUMNS,
    "s3a://tmp/it's/prod/orders.load/12.15/dim/manifest",
    ROLE,
    options_of("ACCEPTINVCHARS AS '?' STATUPDATE ON"),
)
TOKEN = CopyToken("public", NAME)
DIGEST = "0" * 64


def statements() -> list[str]:
    name = str(NAME)
    return [
        TOKEN.create_table(),
        lock_copies("public"),
        TOKEN.read(),
        TOKEN.add("prod/orders.load/it's"),
        TOKEN.stage(DIGEST),
        TOKEN.take(DIGEST),
        LOAD.creation(),
        LOAD.staging(name),
        LOAD.copy(name),
        LOAD.count(name),
        LOAD.added(name),
        *LOAD.rehearsal(name)[1:],
        TOKEN.note(7),
        burn_copies("public", JOB, 15),
    ]


def test_statements_are_those_of_the_golden_file() -> None:
    golden = Path(__file__).with_name("golden.sql").read_text()

    assert ";\n".join(statements()) + ";\n" == golden


@pytest.mark.parametrize("statement", statements())
def test_each_statement_is_one_by_the_grammar(statement: str) -> None:
    assert len(sqlglot.parse(statement, read="redshift")) == 1


def test_without_a_role_the_default_one_of_the_cluster_reads() -> None:
    load = CopyLoad(SinkTable("public", "a"), COLUMNS[:1], "s3://tmp/manifest")

    assert load.copy("t") == "COPY \"t\" FROM 's3://tmp/manifest' IAM_ROLE default FORMAT AS PARQUET MANIFEST"


def test_chain_of_roles_is_taken() -> None:
    assert role_of(f"{ROLE},{ROLE}") == f"{ROLE},{ROLE}"


@pytest.mark.parametrize("role", ["load", f"{ROLE}' ENCRYPTED", "aws_access_key_id=AKIA;aws_secret_access_key=hunter2"])
def test_what_is_no_role_is_refused_and_not_repeated(role: str) -> None:
    with pytest.raises(OptionError, match="no ARN of a role") as caught:
        role_of(role)
    assert role not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        "TRUNCATECOLUMNS",
        "MAXERROR 10",
        "ACCESS_KEY_ID 'AKIA' SECRET_ACCESS_KEY 'hunter2'",
        "STATUPDATE ONTO",
        "ACCEPTINVCHARS '?'; DROP TABLE a",
    ],
)
def test_options_by_which_other_rows_would_come_are_refused_and_not_repeated(options: str) -> None:
    with pytest.raises(OptionError, match="extracopyoptions") as caught:
        options_of(options)
    assert options not in str(caught.value)


@pytest.mark.parametrize("options", [None, "", "COMPUPDATE OFF STATUPDATE", "timeformat 'auto' DATEFORMAT AS 'auto'"])
def test_options_about_what_is_not_there_have_no_effect(options: str | None) -> None:
    assert options_of(options) == ""


@pytest.mark.parametrize("kind", ["array<int>", "struct<a:int>", "binary", "timestamp_ntz", "void", "interval day"])
def test_type_without_a_plain_form_is_refused(kind: str) -> None:
    with pytest.raises(OptionError, match="can't be loaded into Redshift"):
        CopyColumn.of("a", kind)


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE a",
        "truncate table a",
        "ALTER TABLE a APPEND FROM b",
        "DROP DATABASE a",
        "CREATE EXTERNAL TABLE a (b int)",
    ],
)
def test_statement_that_would_commit_in_redshift_is_refused(statement: str) -> None:
    with pytest.raises(OptionError, match="would end the transaction"):
        PublishScript.of("redshift", statement, None)


def test_statements_of_a_merge_are_taken() -> None:
    before = "drop table if exists stage; create table stage as select * from orders where 1=2;"
    after = "begin; delete from orders using stage where stage.id = orders.id; drop table stage; end;"

    assert len(PublishScript.of("redshift", before, after).after) == 2


def test_digest_tells_each_part_of_a_load() -> None:
    others = [
        CopyLoad(SinkTable("public", "b"), LOAD.columns, LOAD.manifest, LOAD.role, LOAD.options),
        CopyLoad(LOAD.table, LOAD.columns[:1], LOAD.manifest, LOAD.role, LOAD.options),
        CopyLoad(LOAD.table, LOAD.columns, None, LOAD.role, LOAD.options),
        CopyLoad(LOAD.table, LOAD.columns, LOAD.manifest, "default", LOAD.options),
        CopyLoad(LOAD.table, LOAD.columns, LOAD.manifest, LOAD.role, ""),
        CopyLoad(LOAD.table, LOAD.columns, LOAD.manifest, LOAD.role, LOAD.options, PublishScript(("DELETE FROM a",))),
    ]

    assert len({LOAD.digest, *(each.digest for each in others)}) == 7
