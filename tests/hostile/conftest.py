"""What hostile tests share: a shop and its store, and the site of the plugin's tests."""

from __future__ import annotations

# First of all: it says where Airflow's home is, before anything imports Airflow.
from tests.airflow.conftest import airflow_database, player, world

# isort: split
from tests.lifecycle.conftest import shop, store
from tests.plugin.conftest import dags, looks, server, site

__all__ = ["airflow_database", "dags", "looks", "player", "server", "shop", "site", "store", "world"]
