"""A Spark without the JDBC driver of a database: the likeliest mistake of a first job says what to do."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.spark.lake import Lake
from tools.servers import DatabaseServer

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NO_DRIVER = r"Spark has no JDBC driver org\.postgresql\.Driver.*packages='org\.postgresql:postgresql:"


def test_missing_driver_says_how_to_get_it(lake: Lake, postgresql_server: DatabaseServer) -> None:
    with new_database(postgresql_server) as login:
        Shop(login).run("CREATE TABLE orders (id int PRIMARY KEY)")
        lake.store.databases = KnownLogin(login)

        with pytest.raises(OptionError, match=NO_DRIVER), lake.job() as job:
            job.read("orders").jdbc("conn:shop", "orders", keys=["id"])
        with pytest.raises(OptionError, match=NO_DRIVER), lake.job() as job:
            job.write(lake.spark.range(1), "dim").jdbc("conn:shop", "dim")
    assert lake.state()[1] == 0
